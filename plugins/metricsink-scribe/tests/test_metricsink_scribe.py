"""The Scribe sink on a real Flume: its contract, TRY_LATER, and outages."""

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
from heron_testing.pytest_plugin import Eventually, wait_until
from heron_testing.relay import Relay
from servers.scribe import ScribeServer
from servers.server_process import free_port

_ARRIVES_S = 30.0
FLUSH_S = 10.0  # the contract's longest flush


def read(scribe: ScribeServer, category: str) -> list[dict[str, object]]:
    """All messages of a category, once what was sent before has been written: Flume's channel is a queue."""
    mark = secrets.token_hex(8)
    client = Client(*scribe.address)
    assert client.log([Entry("marks", mark)]) is Answer.OK
    client.close()
    wait_until(lambda: mark in scribe.messages("marks"), _ARRIVES_S, "Flume writes a mark")
    return [json.loads(each) for each in scribe.messages(category)]


class TestContract(MetricsSinkContract):
    """The Scribe sink keeps the family's contract, with Flume behind a relay."""

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


def test_a_message_says_from_whom_and_when(scribe: ScribeServer, category: str) -> None:
    """Readers outside stand on this shape, which is the file sink's."""
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
    """Flume puts off batches above its limit for ever: only smaller ones get through, each of them once."""
    sink = opened(scribe, category, batch_messages=4 * scribe.batch_messages)
    for value in range(1000):
        sink.process(gauge(float(value)))
    with pytest.raises(SinkError, match="TRY_LATER: records are kept") as caught:
        sink.flush()
    assert caught.value.lost == 0
    eventually(lambda: flushes(sink), 30.0)
    assert values(read(scribe, category)) == [float(value) for value in range(1000)]
    sink.close()


def test_a_killed_server_gets_what_it_missed(scribe: ScribeServer, category: str, eventually: Eventually) -> None:
    """No record that was not acknowledged is given up."""
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
    """An outage of a weekend must not end the metrics manager; events count like metrics."""
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


def test_a_message_that_no_server_takes_is_dropped_alone(scribe: ScribeServer, category: str) -> None:
    """It would end the connection each time it is sent, and hold up all others for ever."""
    sink = opened(scribe, category)
    sink.process(gauge(1.0))
    wide = Metric("wide", MetricKind.GAUGE, "1", 1.0, {"stream": "x" * (9 * 1024 * 1024)})
    with pytest.raises(SinkError, match="above what Scribe's servers take") as caught:
        sink.process(MetricsRecord(SOURCE, AT_S, (wide,)))
    assert (caught.value.lost, caught.value.reason) == (1, "too-large")
    sink.process(gauge(2.0))
    sink.flush()
    assert values(read(scribe, category)) == [1.0, 2.0]
    sink.close()


def test_check_names_what_does_not_answer() -> None:
    """Host and port are what there is to get wrong."""
    port = free_port()
    with pytest.raises(SinkError, match=rf"Scribe at 127\.0\.0\.1:{port} does not answer.*are host and port right"):
        ScribeSink.open({"host": "127.0.0.1", "port": port}).check(1.0)


class Stranger(BaseRequestHandler):
    """Some web server: it answers, and its first letters would be the length of an answer of a gigabyte."""

    def handle(self) -> None:
        self.request.recv(65536)
        self.request.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")


def test_another_server_at_the_address_is_an_outage() -> None:
    """A port that was mixed up: records are kept until it is mended, and nobody waits for the gigabyte."""
    with ThreadingTCPServer(("127.0.0.1", 0), Stranger) as server:
        thread = threading.Thread(target=server.serve_forever)
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
    """A category becomes a folder at many servers."""
    with pytest.raises(ConfigError, match=message):
        ScribeSink.open(options)
