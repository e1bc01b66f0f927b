"""The OTLP sink with receivers of the protocol's own generated server, and of HTTP: its contract, traces, refusals."""

from __future__ import annotations

import gzip
import http.server
import threading
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import grpc
import pytest
from google.protobuf.message import Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest, ExportLogsServiceResponse
from opentelemetry.proto.collector.logs.v1.logs_service_pb2_grpc import (
    LogsServiceServicer,
    add_LogsServiceServicer_to_server,
)
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2_grpc import (
    MetricsServiceServicer,
    add_MetricsServiceServicer_to_server,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import (
    TraceServiceServicer,
    add_TraceServiceServicer_to_server,
)
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import AGGREGATION_TEMPORALITY_CUMULATIVE
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric as OtlpMetric
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from heron.errors import ConfigError, SinkError
from heron.spi.metricsink import Event, Histogram, Metric, MetricKind, MetricsRecord
from heron.spi.tracing import SpanKind, Stamp, StampKind, TraceSpan
from heron_metricsink_otlp import OtlpSink
from heron_metricsink_otlp.sink import headers_of
from heron_testing.contracts.metricsink import AT_S, EMITTED, ENGINE, SOURCE, STARTED, MetricsSinkContract
from heron_testing.faults import Faults, relay_faults
from heron_testing.relay import Relay

UNITS = {"By": "bytes", "s": "s", "1": "1", "{tuples}": "tuples"}


@dataclass
class Received:
    """What a receiver has got, and what it answers next."""

    metrics: list[ExportMetricsServiceRequest] = field(default_factory=list)
    logs: list[ExportLogsServiceRequest] = field(default_factory=list)
    traces: list[ExportTraceServiceRequest] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    status: str = "OK"
    retry: bool = False  # whether a client that is refused for its size or speed may come again
    rejects: int = 0

    def spans(self) -> list[Span]:
        return [
            span
            for request in self.traces
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]


class Receiver:
    """A server that keeps what it gets."""

    address: tuple[str, int]

    def __init__(self) -> None:
        self.received = Received()

    @abstractmethod
    def close(self) -> None:
        """Stops."""


class GrpcReceiver(Receiver):
    """The services that the protocol's own generator makes; each is registered with its own method."""

    def __init__(self) -> None:
        super().__init__()
        self._pool = ThreadPoolExecutor(4)
        self._server = grpc.server(self._pool)
        for service, add in (
            (_Service(self._take_metrics), add_MetricsServiceServicer_to_server),
            (_Service(self._take_logs), add_LogsServiceServicer_to_server),
            (_Service(self._take_traces), add_TraceServiceServicer_to_server),
        ):
            add(service, self._server)  # type: ignore[no-untyped-call]  # generated
        self.address = "127.0.0.1", self._server.add_insecure_port("127.0.0.1:0")
        self._server.start()

    def close(self) -> None:
        self._server.stop(None).wait()
        self._pool.shutdown()

    def _take_metrics(self, request: ExportMetricsServiceRequest, context: grpc.ServicerContext) -> Message:
        self._look(context)
        self.received.metrics.append(request)
        answer = ExportMetricsServiceResponse()
        answer.partial_success.rejected_data_points = self.received.rejects
        return answer

    def _take_logs(self, request: ExportLogsServiceRequest, context: grpc.ServicerContext) -> Message:
        self._look(context)
        self.received.logs.append(request)
        return ExportLogsServiceResponse()

    def _take_traces(self, request: ExportTraceServiceRequest, context: grpc.ServicerContext) -> Message:
        self._look(context)
        self.received.traces.append(request)
        return ExportTraceServiceResponse()

    def _look(self, context: grpc.ServicerContext) -> None:
        self.received.headers.append({key: str(value) for key, value in context.invocation_metadata()})
        if self.received.status != "OK":
            if self.received.retry:
                details = b"type.googleapis.com/google.rpc.RetryInfo"
                context.set_trailing_metadata((("grpc-status-details-bin", details),))
            context.abort(grpc.StatusCode[self.received.status], "as the test wants")


class _Service(MetricsServiceServicer, LogsServiceServicer, TraceServiceServicer):
    """The method that each of the services has."""

    def __init__(self, export: object) -> None:
        self.Export = export  # type: ignore[method-assign, assignment]  # each service has this one method


class _Handler(http.server.BaseHTTPRequestHandler):
    """OTLP over HTTP: one path for each signal, messages in protobuf."""

    received: Received

    def do_POST(self) -> None:  # the name that the server calls
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        assert self.headers["content-type"] == "application/x-protobuf"
        received = self.received
        received.headers.append({key.lower(): value for key, value in self.headers.items()})
        too_much = 429 if received.retry else 413
        status = {"OK": 200, "UNAVAILABLE": 503, "UNAUTHENTICATED": 401}.get(received.status, too_much)
        answer = b""
        if status == 200 and self.path.endswith("/v1/metrics"):
            received.metrics.append(ExportMetricsServiceRequest.FromString(body))
            made = ExportMetricsServiceResponse()
            made.partial_success.rejected_data_points = received.rejects
            answer = made.SerializeToString()
        elif status == 200 and self.path.endswith("/v1/logs"):
            received.logs.append(ExportLogsServiceRequest.FromString(body))
        elif status == 200 and self.path.endswith("/v1/traces"):
            received.traces.append(ExportTraceServiceRequest.FromString(body))
        elif status == 200:
            status = 404
        self.send_response(status)
        self.send_header("content-type", "application/x-protobuf")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the name of the base
        """Writes nothing."""


class HttpReceiver(Receiver):
    """A web server."""

    def __init__(self) -> None:
        super().__init__()
        handler = type("Handler", (_Handler,), {"received": self.received})
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self.address = "127.0.0.1", self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


RECEIVERS: dict[str, type[Receiver]] = {"grpc": GrpcReceiver, "http": HttpReceiver}


def text_of(values: Sequence[KeyValue]) -> dict[str, str]:
    return {each.key: each.value.string_value for each in values}


def metric_of(given: OtlpMetric) -> tuple[int, Metric]:
    """``(time, metric)`` as Heron has it."""
    name, unit = given.name.removeprefix("heron."), UNITS[given.unit]
    if given.HasField("histogram"):
        (of_histogram,) = given.histogram.data_points
        assert given.histogram.aggregation_temporality == AGGREGATION_TEMPORALITY_CUMULATIVE
        value = Histogram(tuple(of_histogram.explicit_bounds), tuple(of_histogram.bucket_counts), of_histogram.sum)
        assert of_histogram.count == sum(value.counts)
        labels = text_of(of_histogram.attributes)
        return of_histogram.time_unix_nano, Metric(name, MetricKind.HISTOGRAM, unit, value, labels)
    is_sum = given.HasField("sum")
    if is_sum:
        assert given.sum.is_monotonic
        assert given.sum.aggregation_temporality == AGGREGATION_TEMPORALITY_CUMULATIVE
    (point,) = given.sum.data_points if is_sum else given.gauge.data_points
    kind = MetricKind.COUNTER if is_sum else MetricKind.GAUGE
    return point.time_unix_nano, Metric(name, kind, unit, point.as_double, text_of(point.attributes))


class OtlpContract(MetricsSinkContract):
    """The OTLP sink meets the contract of the family over one transport, with the receiver behind a relay."""

    name = "otlp"
    driver_class = OtlpSink
    protocol: str

    @pytest.fixture
    def receiver(self) -> Iterator[Receiver]:
        receiver = RECEIVERS[self.protocol]()
        self.received = receiver.received
        yield receiver
        receiver.close()

    @pytest.fixture
    def relay(self, receiver: Receiver) -> Iterator[Relay]:
        relay = Relay(receiver.address)
        yield relay
        relay.close()

    @pytest.fixture
    def faults(self, relay: Relay) -> Faults:
        return relay_faults(relay)

    @pytest.fixture
    def options(self, relay: Relay) -> dict[str, object]:
        host, port = relay.address
        return {"endpoint": f"http://{host}:{port}", "protocol": self.protocol}

    def metrics(self) -> Sequence[Metric]:
        found = [
            metric_of(metric)
            for request in tuple(self.received.metrics)
            for resource in request.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        ]
        once: dict[tuple[int, str], Metric] = {(at_ns, each.name): each for at_ns, each in found}
        return [once[key] for key in sorted(once)]

    def events(self) -> Sequence[Event]:
        return [
            _event(log.event_name, log.time_unix_nano, text_of(log.attributes))
            for request in self.received.logs
            for resource in request.resource_logs
            for scope in resource.scope_logs
            for log in scope.log_records
        ]


def _event(name: str, at_ns: int, values: dict[str, str]) -> Event:
    event_id, subject, cause = (values.pop(f"heron.event.{each}") for each in ("id", "subject", "cause"))
    return Event(event_id, name, at_ns / 1e9, subject, cause, values)


class TestOverGrpc(OtlpContract):
    """The contract over gRPC."""

    protocol = "grpc"


class TestOverHttp(OtlpContract):
    """The contract over HTTP."""

    protocol = "http"


@pytest.fixture(params=sorted(RECEIVERS))
def receiver(request: pytest.FixtureRequest) -> Iterator[Receiver]:
    made = RECEIVERS[request.param]()
    yield made
    made.close()


def sink_to(receiver: Receiver, **options: object) -> OtlpSink:
    host, port = receiver.address
    protocol = "grpc" if isinstance(receiver, GrpcReceiver) else "http"
    return OtlpSink.open({"endpoint": f"http://{host}:{port}", "protocol": protocol, **options})


def stamp(kind: StampKind, ms: int, clock: int = 1) -> Stamp:
    return Stamp(kind, clock, ms * 1_000_000, 1_700_000_000_000_000_000 + ms * 1_000_000)


ROOT = TraceSpan("00000000000000ab", "00000000000000cd", "", SpanKind.ROOT, "lines", 1, (stamp(StampKind.EMITTED, 0),))
EXECUTION = TraceSpan(
    "00000000000000ab",
    "00000000000000ef",
    "00000000000000cd",
    SpanKind.EXECUTION,
    "count",
    3,
    (
        stamp(StampKind.EMITTED, 0),
        stamp(StampKind.FLUSHED, 10),
        stamp(StampKind.PEER_ROUTED, 12, clock=2),
        stamp(StampKind.STARTED, 20, clock=2),
        stamp(StampKind.ENDED, 70, clock=2),
    ),
    source="lines",
    source_task=1,
    stream="default",
    rows=7,
    emitted=4,
    followed=3,
)


def test_a_trace_is_a_tree_of_spans(receiver: Receiver) -> None:
    """The execution is below the emit of the root, and each hop is below the execution."""
    sink = sink_to(receiver)
    sink.process(MetricsRecord(SOURCE, AT_S, spans=(ROOT, EXECUTION)))
    sink.flush()
    sink.close()
    root, execution, *hops = receiver.received.spans()
    assert {each.trace_id.hex() for each in (root, execution, *hops)} == {"000000000000000000000000000000ab"}
    assert (root.name, root.span_id.hex(), root.parent_span_id) == ("emit lines", "00000000000000cd", b"")
    assert (execution.name, execution.parent_span_id) == ("count", root.span_id)
    assert [each.name for each in hops] == ["emit batch", "wire", "queue", "execute count"]
    assert {each.parent_span_id for each in hops} == {execution.span_id}
    assert len({each.span_id for each in hops}) == 4
    starts = [(each.start_time_unix_nano - root.start_time_unix_nano) // 1_000_000 for each in hops]
    lengths = [(each.end_time_unix_nano - each.start_time_unix_nano) // 1_000_000 for each in hops]
    assert (starts, lengths) == ([0, 10, 12, 20], [10, 2, 8, 50])
    assert [any(one.key == "heron.estimate" for one in each.attributes) for each in hops] == [False, True, False, False]
    own = {each.key: each.value for each in execution.attributes}
    assert (own["heron.source"].string_value, own["heron.batch.rows"].int_value) == ("lines", 7)
    (resource,) = (each.resource for each in receiver.received.traces[0].resource_spans)
    assert text_of(resource.attributes)["service.name"] == SOURCE.component
    assert not receiver.received.metrics


def test_a_span_that_is_sent_twice_has_the_same_ids(receiver: Receiver) -> None:
    """After an answer that was lost, the receiver can tell that it has the span already."""
    sink = sink_to(receiver)
    for _ in range(2):
        sink.process(MetricsRecord(SOURCE, AT_S, spans=(EXECUTION,)))
    sink.flush()
    sink.close()
    ids = [each.span_id for each in receiver.received.spans()]
    assert ids[: len(ids) // 2] == ids[len(ids) // 2 :]


@pytest.mark.parametrize(
    ("outcome", "code"), [("complete", Status.STATUS_CODE_UNSET), ("failed", Status.STATUS_CODE_ERROR)]
)
def test_the_outcome_of_a_root_is_a_span(receiver: Receiver, outcome: str, code: int) -> None:
    """It comes in a later record than the emit."""
    ended = (stamp(StampKind.SETTLED, 90),)
    settled = TraceSpan(ROOT.trace_id, ROOT.span_id, "", SpanKind.ROOT, "lines", 1, ended, outcome=outcome)
    sink = sink_to(receiver)
    sink.process(MetricsRecord(SOURCE, AT_S, spans=(settled,)))
    sink.close()  # which delivers
    (ack,) = receiver.received.spans()
    assert (ack.name, ack.parent_span_id.hex(), ack.status.code) == ("ack", ROOT.span_id, code)


def test_headers_are_sent(receiver: Receiver) -> None:
    """A collector of a provider wants a token."""
    sink = sink_to(receiver, headers="authorization=Bearer%20abc,X-Tenant=a=b")
    sink.process(MetricsRecord(SOURCE, AT_S, (EMITTED,)))
    sink.flush()
    sink.close()
    (headers,) = receiver.received.headers
    assert (headers["authorization"], headers["x-tenant"]) == ("Bearer abc", "a=b")


def test_only_the_chosen_signals_are_sent(receiver: Receiver) -> None:
    """A system for traces takes no metrics."""
    sink = sink_to(receiver, signals=["traces"], compression="none")
    sink.process(MetricsRecord(ENGINE, AT_S, (EMITTED,), (STARTED,), (EXECUTION,)))
    sink.flush()
    sink.close()
    received = receiver.received
    assert (len(received.metrics), len(received.logs), len(received.traces)) == (0, 0, 1)


@pytest.mark.parametrize("status", ["UNAUTHENTICATED", "RESOURCE_EXHAUSTED"])
def test_what_is_refused_for_good_is_dropped_and_counted(receiver: Receiver, status: str) -> None:
    """Sending it again would never succeed, and would hold back what follows: it may be too long."""
    sink = sink_to(receiver)
    receiver.received.status = status
    sink.process(MetricsRecord(SOURCE, AT_S, (EMITTED,)))
    sink.process(MetricsRecord(SOURCE, AT_S + 1, (EMITTED,)))
    with pytest.raises(SinkError, match=rf"{status}|401|413") as caught:
        sink.flush()
    assert (caught.value.lost, caught.value.reason) == (2, "rejected")
    receiver.received.status = "OK"
    sink.flush()
    sink.close()
    assert not receiver.received.metrics


@pytest.mark.parametrize("status", ["UNAVAILABLE", "RESOURCE_EXHAUSTED"])
def test_what_cannot_be_taken_now_is_kept(receiver: Receiver, status: str) -> None:
    """A collector that restarts loses nothing; signals do not wait for the pause of another."""
    sink = sink_to(receiver)
    receiver.received.status, receiver.received.retry = status, True
    sink.process(MetricsRecord(SOURCE, AT_S, (EMITTED,)))
    with pytest.raises(SinkError, match=rf"{status}|503|429") as caught:
        sink.flush()
    assert caught.value.lost == 0
    receiver.received.status = "OK"
    sink.close()
    assert len(receiver.received.metrics) == 1


def test_a_part_that_is_rejected_is_counted(receiver: Receiver) -> None:
    """The request has arrived; OTLP forbids to send it again."""
    receiver.received.rejects = 1
    sink = sink_to(receiver)
    sink.process(MetricsRecord(SOURCE, AT_S, (EMITTED,)))
    sink.process(MetricsRecord(SOURCE, AT_S + 1, (EMITTED,)))
    with pytest.raises(SinkError, match="rejected 1 of metrics") as caught:
        sink.flush()
    assert (caught.value.lost, caught.value.reason) == (1, "rejected")
    receiver.received.rejects = 0
    sink.flush()
    sink.close()
    assert len(receiver.received.metrics) == 1


def test_a_web_server_is_no_collector() -> None:
    """A page with status 200 must not count as an answer."""

    class Page(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.send_header("content-length", "5")
            self.end_headers()
            self.wfile.write(b"<html")

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Writes nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        sink = OtlpSink.open({"endpoint": f"http://127.0.0.1:{server.server_port}", "protocol": "http"})
        with pytest.raises(SinkError, match="is it a collector of OTLP"):
            sink.check(4.0)
        sink.close()
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"endpoint": "collector:4317"}, "is not a URL"),
        ({"endpoint": "ftp://collector"}, "is not a URL"),
        ({"endpoint": "http://collector:99999"}, "is not a URL"),
        ({"endpoint": "http://collector/v1"}, "has a path"),
        ({"endpoint": "http://c", "headers": "token"}, "number 1 is not NAME=VALUE"),
        ({"endpoint": "http://c", "headers": "a=b,c=d%0Aevil"}, "number 2 is not NAME=VALUE"),
        ({"endpoint": "http://c", "signals": ["profiles"]}, "signals"),
        ({"endpoint": "https://c", "ca_file": "/no/such/file"}, "cannot be read"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, object], message: str) -> None:
    """A profile that cannot work is refused before a topology starts."""
    with pytest.raises(ConfigError, match=message):
        OtlpSink.open(options)


def test_a_ca_file_without_certificates_is_refused(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Over HTTP the file is read at once; over gRPC the first connection fails."""
    file = tmp_path_factory.mktemp("ca") / "ca.pem"
    file.write_text("no certificates", encoding="ascii")
    with pytest.raises(ConfigError, match="has no certificates"):
        OtlpSink.open({"endpoint": "https://c", "protocol": "http", "ca_file": str(file)})


def test_headers_have_the_form_of_opentelemetry() -> None:
    """The text of OTEL_EXPORTER_OTLP_HEADERS can be used as it is."""
    assert headers_of("") == {}
    assert headers_of(" a = b , c=%2Cd ,") == {"a": "b", "c": ",d"}
