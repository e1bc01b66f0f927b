"""The Scribe sink with a real Flume: its contract, TRY_LATER, and outages."""

from __future__ import annotations

import json
import secrets
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from socketserver import BaseRequestHandler, ThreadingTCPServer

import msgspec
import pytest

from heron.errors import ConfigError, SinkError
from heron.spi.metricsink import Event, Metric, MetricKind, MetricsRecord
from heron_metricsink_scribe import ScribeSink
from heron_metricsink_scribe.client import Answer, Client, Entry
from heron_testing.contracts.driver import in_time
from heron_testing.contracts.metricsink import AT_S, EMITTED, SOURCE, STARTED, MetricsSinkContract
from heron_testing.faults import Faults, relay_faults
from heron_testing.ports import free_port
from heron_testing.relay import Relay
from heron_testing.waiting import Eventually, wait_until
from heron_testing_servers.scribe import ScribeServer

_ARRIVES_S = 30.0
FLUSH_S = 10.0  # the longest flush that the contract allows


def read(scribe: ScribeServer, category: str) -> list[dict[str, object]]:
    """Return all messages of a category, after Flume has written all earlier messages: its channel is a queue."""
    mark = secrets.token_hex(8)
    client = Client(*scribe.address)
    assert client.log([Entry("marks", mark)]) is Answer.OK
    client.close()
    wait_until(lambda: mark in scribe.messages("marks"), _ARRIVES_S, "Flume writes a mark")
    return [json.loads(each) for each in scribe.messages(category)]


class TestContract(MetricsSinkContract):
    """The Scribe sink meets the contract of the family, with Flume behind a relay."""

    name = "scribe"
    driver_class = ScribeSink

    @pytest.fixture
    def relay(self, scribe: ScribeServer) -> Iterator[Relay]:
        relay = Relay(scribe.address)
        yield relay
        relay.close()

    @pytest.fixture
    def faults(self, relay: Relay) -> Faults:
        return relay_faults(relay)

    @pytest.fixture
    def options(self, scribe: ScribeServer, relay: Relay) -> dict[str, object]:
        self.scribe = scribe
        self.category = secrets.token_hex(6)
        host, port = relay.address
        return {
            "host": host,
            "port": port,
            "metrics_category": f"m{self.category}",
            "events_category": f"e{self.category}",
        }

    def metrics(self) -> Sequence[Metric]:
        found = [each["metrics"] for each in read(self.scribe, f"m{self.category}")]
        return [metric for each in found for metric in msgspec.convert(each, list[Metric])]

    def events(self) -> Sequence[Event]:
        return [msgspec.convert(each, Event) for each in read(self.scribe, f"e{self.category}")]


@pytest.fixture
def category() -> str:
    return f"c{secrets.token_hex(6)}"


def opened(scribe: ScribeServer, category: str, **options: object) -> ScribeSink:
    host, port = scribe.address
    return ScribeSink.open({"host": host, "port": port, "metrics_category": category, **options})


def gauge(value: float) -> MetricsRecord:
    return MetricsRecord(SOURCE, AT_S + value, (Metric("queue", MetricKind.GAUGE, "bytes", value),))


def values(found: list[dict[str, object]]) -> list[float]:
    metrics = [msgspec.convert(each["metrics"], list[Metric])[0].value for each in found]
    return [value for value in metrics if isinstance(value, float)]


def flushes(sink: ScribeSink) -> bool:
    try:
        sink.flush()
    except SinkError:
        return False
    return True


def test_message_has_the_source_and_the_time(scribe: ScribeServer, category: str) -> None:
    """Other programs depend on this format; the file sink has the same format."""
    sink = opened(scribe, category)
    sink.process(MetricsRecord(SOURCE, AT_S, (EMITTED,)))
    sink.flush()
    sink.close()
    (found,) = read(scribe, category)
    assert found["at_s"] == AT_S
    assert found["source"] == json.loads(msgspec.json.encode(SOURCE))
    assert msgspec.convert(found["metrics"], list[Metric]) == [EMITTED]


def test_try_later_is_back_pressure_and_loses_nothing(
    scribe: ScribeServer, category: str, eventually: Eventually
) -> None:
    """Flume never accepts a batch above its limit. Each record arrives once, in a smaller batch."""
    sink = opened(scribe, category, batch_messages=4 * scribe.batch_messages)
    for value in range(1000):
        sink.process(gauge(float(value)))
    with pytest.raises(SinkError, match="answers TRY_LATER: records are kept") as caught:
        sink.flush()
    assert caught.value.lost == 0
    eventually(lambda: flushes(sink), 30.0)
    assert values(read(scribe, category)) == [float(value) for value in range(1000)]
    sink.close()


def test_a_killed_server_receives_missed_records_later(
    scribe: ScribeServer, category: str, eventually: Eventually
) -> None:
    """The sink keeps each record until the server confirms it."""
    sink = opened(scribe, category)
    sink.process(gauge(1.0))
    sink.flush()
    assert values(read(scribe, category)) == [1.0]
    scribe.kill()
    try:
        for value in (2.0, 3.0):
            sink.process(gauge(value))
            with pytest.raises(SinkError, match="Scribe at"):
                sink.flush()
    finally:
        scribe.start()
    eventually(lambda: flushes(sink), 30.0)
    assert values(read(scribe, category)) == [1.0, 2.0, 3.0]
    sink.close()


def test_memory_is_bounded_and_losses_are_counted() -> None:
    """A long outage must not exhaust the memory of the metrics manager; events count like metrics."""
    sink = ScribeSink.open({"host": "127.0.0.1", "port": free_port(), "max_buffer_bytes": 65536})
    lost: Counter[str] = Counter()
    for _ in range(1000):
        try:
            sink.process(MetricsRecord(SOURCE, AT_S, (EMITTED,), (STARTED,)))
        except SinkError as error:
            lost[error.reason] += error.lost
    assert set(lost) == {"unsent"}
    assert 1000 < lost["unsent"] < 2000
    sink.close()


def test_only_the_message_above_the_limit_is_dropped(scribe: ScribeServer, category: str) -> None:
    """The server would close the connection at this message each time, and no later message would arrive."""
    sink = opened(scribe, category)
    sink.process(gauge(1.0))
    wide = Metric("wide", MetricKind.GAUGE, "1", 1.0, {"stream": "x" * (9 * 1024 * 1024)})
    with pytest.raises(SinkError, match="larger than the limit for Scribe, 8388608 bytes") as caught:
        sink.process(MetricsRecord(SOURCE, AT_S, (wide,)))
    assert (caught.value.lost, caught.value.reason) == (1, "too-large")
    sink.process(gauge(2.0))
    sink.flush()
    assert values(read(scribe, category)) == [1.0, 2.0]
    sink.close()


def test_check_names_the_server_that_does_not_answer() -> None:
    """The likely mistakes are a wrong host and a wrong port."""
    port = free_port()
    with pytest.raises(SinkError, match=rf"Scribe at 127\.0\.0\.1:{port} does not answer.*are host and port right"):
        ScribeSink.open({"host": "127.0.0.1", "port": port}).check(1.0)


class WebServer(BaseRequestHandler):
    """Sends an answer of HTTP. As Thrift, its first four bytes are the length of an answer of a gigabyte."""

    def handle(self) -> None:
        self.request.recv(65536)
        self.request.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")


def test_a_server_of_another_protocol_is_an_outage() -> None:
    """With a wrong port the sink keeps the records, and does not wait for a gigabyte."""
    with ThreadingTCPServer(("127.0.0.1", 0), WebServer) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        port = server.server_address[1]
        sink = ScribeSink.open({"host": "127.0.0.1", "port": port})
        sink.process(gauge(1.0))
        with in_time(FLUSH_S), pytest.raises(SinkError, match=rf"Scribe at 127\.0\.0\.1:{port} does not") as caught:
            sink.flush()
        server.shutdown()
        thread.join()
    assert caught.value.lost == 0
    with in_time(FLUSH_S):
        sink.close()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"metricsink\.host: missing"),
        ({"host": "h", "batch_messages": 0}, r"metricsink\.batch_messages: expected `int` >= 1; it is 0"),
        ({"host": "h", "metrics_category": "../x"}, r"metricsink\.metrics_category: .*'\.\./x'"),
    ],
)
def test_option_out_of_range_is_refused(options: dict[str, object], message: str) -> None:
    """Many servers use the category as the name of a folder."""
    with pytest.raises(ConfigError, match=message):
        ScribeSink.open(options)
