"""Containers on separate hosts send metrics and traces to a collector on another host, which they may not reach."""

from __future__ import annotations

import gzip
import http.server
import math
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import grpc
from google.protobuf.message import Message
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
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from heron.clock import wall_s
from heron_testing_servers.network import HERE, Network
from test_on_network import QUICK, Crossing

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox

OUTAGE_S = 3.0
EMITTED = "heron.emit-count"
SINKS = """\
metricsink:
  - {{driver: otlp, endpoint: "http://{grpc}", signals: [metrics, traces]}}
  - {{driver: otlp, endpoint: "http://{http}", protocol: http, signals: [metrics, traces]}}
"""


class Total(NamedTuple):
    """How many tuples a process had emitted at a time."""

    container_id: int
    process: str
    at_s: float
    tuples: float


class Collected:
    """What a collector has received: totals of emitted tuples, and the containers of each trace."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._totals: set[Total] = set()
        self._containers_of: dict[bytes, set[int]] = {}

    def take_metrics(self, request: ExportMetricsServiceRequest) -> None:
        """Keep the totals of emitted tuples."""
        for each in request.resource_metrics:
            container_id, process = place_of(each.resource)
            for metric in (metric for scope in each.scope_metrics for metric in scope.metrics):
                if metric.name == EMITTED:
                    with self._lock:
                        self._totals.update(
                            Total(container_id, process, point.time_unix_nano / 1e9, point.as_double)
                            for point in metric.sum.data_points
                        )

    def take_traces(self, request: ExportTraceServiceRequest) -> None:
        """Keep where the spans are from."""
        for each in request.resource_spans:
            for span in (span for scope in each.scope_spans for span in scope.spans):
                with self._lock:
                    self._containers_of.setdefault(span.trace_id, set()).add(place_of(each.resource)[0])

    def crossed(self) -> bool:
        """Return whether a trace has spans of both containers."""
        with self._lock:
            return any({1, 2} <= found for found in self._containers_of.values())

    def totals(self, container_id: int, since_s: float, until_s: float = math.inf) -> list[Total]:
        """Return the totals that a container measured between two times, by process and time."""
        with self._lock:
            found = [each for each in self._totals if each.container_id == container_id]
        return sorted(each for each in found if since_s <= each.at_s < until_s)

    def grown(self, container_id: int, since_s: float) -> bool:
        """Return whether a process of the container has emitted tuples since then."""
        pairs = pairwise(self.totals(container_id, since_s))
        return any(one.process == other.process and one.tuples < other.tuples for one, other in pairs)


def place_of(resource: Resource) -> tuple[int, str]:
    """Return the container and the name of a process."""
    found = {each.key: each.value for each in resource.attributes}
    return int(found["heron.container"].int_value), found["service.instance.id"].string_value


class Metrics(MetricsServiceServicer):
    """The service of metrics."""

    def __init__(self, collected: Collected) -> None:
        self.collected = collected

    def Export(self, request: ExportMetricsServiceRequest, context: grpc.ServicerContext) -> Message:
        """Take a request."""
        self.collected.take_metrics(request)
        return ExportMetricsServiceResponse()


class Traces(TraceServiceServicer):
    """The service of traces."""

    def __init__(self, collected: Collected) -> None:
        self.collected = collected

    def Export(self, request: ExportTraceServiceRequest, context: grpc.ServicerContext) -> Message:
        """Take a request."""
        self.collected.take_traces(request)
        return ExportTraceServiceResponse()


@contextmanager
def over_grpc(address: str, collected: Collected) -> Iterator[str]:
    """Serve at an address with the services of the protocol; yield it with the port."""
    with ThreadPoolExecutor(4) as pool:
        server = grpc.server(pool)
        add_MetricsServiceServicer_to_server(Metrics(collected), server)  # type: ignore[no-untyped-call]  # generated
        add_TraceServiceServicer_to_server(Traces(collected), server)  # type: ignore[no-untyped-call]  # generated
        port = server.add_insecure_port(f"{address}:0")
        server.start()
        try:
            yield f"{address}:{port}"
        finally:
            server.stop(None).wait()


@contextmanager
def over_http(address: str, collected: Collected) -> Iterator[str]:
    """The same for a web server."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:  # the name that the server calls
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            if self.path.endswith("/v1/metrics"):
                collected.take_metrics(ExportMetricsServiceRequest.FromString(body))
            else:
                collected.take_traces(ExportTraceServiceRequest.FromString(body))
            self.send_response(200)
            self.send_header("content-type", "application/x-protobuf")
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the name of the base
            """Write nothing."""

    with http.server.ThreadingHTTPServer((address, 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"{address}:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def test_a_collector_on_another_host_gets_what_it_missed(sandbox: Sandbox, network: Network) -> None:
    """A trace has spans of both hosts. Totals of the time without the link come after it, and data flows meanwhile."""
    collectors = {"grpc": Collected(), "http": Collected()}
    with ExitStack() as stack:
        addresses = {
            name: stack.enter_context(serve(network.address(HERE), collectors[name]))
            for name, serve in (("grpc", over_grpc), ("http", over_http))
        }
        settings = {**QUICK, "heron.metrics.export.s": 0.25}
        crossing = Crossing(sandbox, network, settings, SINKS.format(**addresses))
        sandbox.output_of("update", "crossing", "--profile", "net", "--runtime-config", "topology.trace.one.in=20")
        since_s = wall_s()
        for name, collected in collectors.items():
            for container_id in (1, 2):
                what = f"metrics of container {container_id} by {name}"
                crossing.run.until(partial(collected.grown, container_id, since_s), what)
            crossing.run.until(collected.crossed, f"a trace across both hosts by {name}")
        with network.cut(2, HERE):
            began_s = wall_s() + 1.0  # what was on its way may arrive
            crossing.pass_time(OUTAGE_S)
            crossing.flows("while container 2 does not reach the collector")
            for name, collected in collectors.items():
                crossing.run.until(partial(collected.grown, 1, began_s), f"metrics of container 1 by {name}")
                assert collected.totals(2, began_s) == []
            ended_s = wall_s()
        for name, collected in collectors.items():
            crossing.run.until(partial(collected.grown, 2, ended_s), f"metrics after the outage by {name}", 60.0)

        def complete() -> bool:
            """Return whether both sinks have sent the same totals, because they get the same ones."""
            missed = [collected.totals(2, began_s, ended_s) for collected in collectors.values()]
            return missed[0] == missed[1] and len(missed[0]) > ended_s - began_s

        crossing.run.until(complete, "the totals of the outage by both", 60.0)
        crossing.untouched()
        crossing.complete()
