"""The Graphite sink on a real carbon: its contract with both protocols, names, and outages."""

from __future__ import annotations

import math
import re
import secrets
import socket
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from heron.clock import wall_s
from heron.errors import ConfigError, SinkError
from heron.spi.metricsink import Event, Histogram, Metric, MetricKind, MetricsRecord, Source
from heron_metricsink_graphite import GraphiteSink
from heron_metricsink_graphite.series import parts, points, series_name
from heron_testing.contracts.metricsink import AT_S, EMITTED, LATENCY, QUEUE, SOURCE, MetricsSinkContract
from heron_testing.contracts.parts.second_process import numbered
from heron_testing.faults import Faults, relay_faults
from heron_testing.ports import free_port
from heron_testing.relay import Relay
from heron_testing.waiting import Eventually, wait_until
from heron_testing_servers.carbon import CarbonServer

ENGINE = Source("words", 1, "stmgr", 2)
LATE = (Source("words", 1, "late", 0), Metric("late", MetricKind.GAUGE, "1", 1.0))
KNOWN = ((SOURCE, EMITTED), (ENGINE, EMITTED), (SOURCE, QUEUE), (SOURCE, numbered(1).metrics[0]), LATE)
"""Graphite keeps only names and values; this table has the kind and unit for each name."""


class GraphiteCases(MetricsSinkContract):
    """The contract of the family; in the cases of faults, carbon is behind a relay."""

    name = "graphite"
    driver_class = GraphiteSink
    protocol: str

    @pytest.fixture
    def relay(self, carbon: CarbonServer) -> Iterator[Relay]:
        relay = Relay(getattr(carbon, self.protocol))
        yield relay
        relay.close()

    @pytest.fixture
    def faults(self, relay: Relay) -> Faults:
        return relay_faults(relay)

    @pytest.fixture
    def options(self, carbon: CarbonServer, request: pytest.FixtureRequest) -> dict[str, object]:
        self.carbon = carbon
        self.prefix = f"t{secrets.token_hex(6)}"
        # Only the cases of faults use the relay: it can delay flushed data beyond the check of a test.
        behind = "faults" in request.fixturenames
        host, port = request.getfixturevalue("relay").address if behind else getattr(carbon, self.protocol)
        return {"host": host, "port": port, "protocol": self.protocol, "prefix": self.prefix}

    def metrics(self) -> Sequence[Metric]:
        seen = self._read()
        while (again := self._read()) != seen:
            seen = again
        return seen

    def events(self) -> Sequence[Event]:
        return ()

    def _read(self) -> list[Metric]:
        mark(self.carbon)
        found = [
            (at_s, replace(metric, value=value))
            for source, metric in KNOWN
            for at_s, value in self.carbon.points(series_name(self.prefix, source, metric)).items()
        ]
        return [metric for _, metric in sorted(found, key=lambda each: (each[0], each[1].name))]


class TestPlaintext(GraphiteCases):
    """The contract with the plain text protocol."""

    protocol = "plaintext"


class TestPickle(GraphiteCases):
    """The contract with the pickle protocol."""

    protocol = "pickle"


def mark(carbon: CarbonServer) -> None:
    """Wait until carbon has received all earlier data: one thread of carbon receives everything in order."""
    name = f"mark.m{secrets.token_hex(6)}"
    with socket.create_connection(carbon.plaintext, 10) as connected:
        connected.sendall(f"{name} 1 {int(wall_s())}\n".encode())
        wait_until(lambda: carbon.points(name), 10.0, "carbon receives a mark")


@pytest.fixture
def prefix() -> str:
    return f"t{secrets.token_hex(6)}"


@pytest.fixture(params=["plaintext", "pickle"])
def sink(request: pytest.FixtureRequest, carbon: CarbonServer, prefix: str) -> Iterator[GraphiteSink]:
    """A sink with a direct connection to carbon."""
    host, port = getattr(carbon, request.param)
    sink = GraphiteSink.open({"host": host, "port": port, "protocol": request.param, "prefix": prefix})
    yield sink
    sink.close()


def gauge(value: float, at_s: float = AT_S) -> MetricsRecord:
    return MetricsRecord(SOURCE, at_s, (Metric("queue", MetricKind.GAUGE, "bytes", value),))


def test_whisper_files_have_names_and_values(
    sink: GraphiteSink, carbon: CarbonServer, prefix: str, eventually: Eventually
) -> None:
    """Dashboards read the names that the README promises; a latency has a count and a sum."""
    sink.process(MetricsRecord(SOURCE, AT_S, (EMITTED, LATENCY)))
    sink.process(MetricsRecord(ENGINE, AT_S, (replace(EMITTED, name="outlet-bytes", labels={"task": "3"}),)))
    sink.flush()
    task = f"{prefix}.words.tasks.count.3"
    wanted = (
        f"{prefix}.words.containers.1.stmgr.outlet-bytes.task.3",
        f"{task}.emitted.stream.default",
        f"{task}.latency.count",
        f"{task}.latency.sum",
    )
    eventually(lambda: carbon.series(prefix) == wanted)
    eventually(lambda: all(map(carbon.written, wanted)))
    assert carbon.written(wanted[1]) == {int(AT_S): 12.0}
    assert carbon.written(wanted[2]) == {int(AT_S): 6.0}
    assert carbon.written(wanted[3]) == {int(AT_S): 0.25}


def test_a_killed_carbon_receives_missed_records_later(
    sink: GraphiteSink, carbon: CarbonServer, prefix: str, eventually: Eventually
) -> None:
    """A graph has no gap after an outage: records that were sent last, and kept records, have their original times."""
    series = series_name(prefix, SOURCE, QUEUE)
    sink.process(gauge(1.0))
    sink.flush()
    carbon.kill()
    try:
        sink.process(gauge(2.0, AT_S + 1))
        with pytest.raises(SinkError, match=r"carbon at 127\.0\.0\.1:\d+ does not answer"):
            sink.flush()
        sink.process(gauge(3.0, AT_S + 2))
        with pytest.raises(SinkError, match="did not accept records: they are kept"):
            sink.flush()
    finally:
        carbon.start()
    eventually(lambda: flushes(sink))
    eventually(lambda: list(carbon.points(series).values()) == [1.0, 2.0, 3.0])


def test_unread_records_are_sent_again() -> None:
    """A host that shuts down accepts connections until the end, but no process reads from them."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        sink = GraphiteSink.open({"host": "127.0.0.1", "port": listening.getsockname()[1], "prefix": "p"})
        for number in (1, 2):
            sink.process(gauge(float(number), AT_S + number))
            sink.flush()
        listening.accept()[0].close()
        sink.process(gauge(3.0, AT_S + 3))
        sink.flush()
        accepted = listening.accept()[0]
    sink.close()
    with accepted, accepted.makefile() as lines:
        assert [float(line.split()[1]) for line in lines] == [1.0, 2.0, 3.0]


def flushes(sink: GraphiteSink) -> bool:
    try:
        sink.flush()
    except SinkError:
        return False
    return True


def test_close_sends_the_last_record_also_during_the_wait(
    carbon: CarbonServer, prefix: str, eventually: Eventually
) -> None:
    """A carbon that returns shortly before the end still receives the last values."""
    host, port = carbon.plaintext
    sink = GraphiteSink.open({"host": host, "port": port, "prefix": prefix})
    carbon.kill()
    try:
        sink.process(gauge(7.0))
        with pytest.raises(SinkError):
            sink.flush()
    finally:
        carbon.start()
    sink.close()
    eventually(lambda: list(carbon.points(series_name(prefix, SOURCE, QUEUE)).values()) == [7.0])


def test_memory_is_bounded_and_losses_are_counted() -> None:
    """A long outage must not exhaust the memory of the metrics manager."""
    sink = GraphiteSink.open({"host": "127.0.0.1", "port": free_port(), "max_buffer_bytes": 65536})
    lost: Counter[str] = Counter()
    for number in range(2000):
        try:
            sink.process(gauge(float(number)))
        except SinkError as error:
            lost[error.reason] += error.lost
    assert set(lost) == {"unsent"}
    assert 1000 < lost["unsent"] < 2000
    sink.close()


def test_different_names_stay_different_and_are_valid_for_carbon() -> None:
    """Streams can have any name. Two names never share a series, and no name leaves the folder of the metrics."""
    hostile = ["a b", "a_b", "a.b", "../x", "", ".", "ä", "x" * 300, "x" * 301, "a\nb 1 2\n", "\ud800", "a/b"]
    names = [series_name("p", SOURCE, Metric("n", MetricKind.GAUGE, "1", 1.0, {"s": text})) for text in hostile]
    assert len(set(names)) == len(names)
    for name in names:
        nodes = name.split(".")
        assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,200}", node) for node in nodes), name
        assert len(nodes) == 8
    many = Metric("n", MetricKind.GAUGE, "1", 1.0, {f"label{number}": "x" * 100 for number in range(100)})
    assert len(series_name("p", SOURCE, many)) < 1100


def test_values_that_are_not_finite_are_left_out() -> None:
    """Carbon drops a line with NaN. Whisper stores infinity, which makes every sum infinite."""
    values: tuple[float | Histogram, ...] = (math.nan, math.inf, 1.0, Histogram((1.0,), (1, 0), math.nan))
    metrics = tuple(Metric(f"m{number}", MetricKind.GAUGE, "1", value) for number, value in enumerate(values))
    found = [name.partition(".count.3.")[2] for name, _ in points("p", MetricsRecord(SOURCE, 1.0, metrics))]
    assert found == ["m2", "m3.count"]


def test_messages_stay_below_the_limit_of_carbon() -> None:
    """Carbon closes the connection at a pickled message above 1 MiB."""
    many = [(f"name{number}" * 20, (1, 1.0)) for number in range(20000)]
    divided = list(parts(many))
    assert [point for part in divided for point in part] == many
    assert max(sum(len(name) + 50 for name, _ in part) for part in divided) < 300_000


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"metricsink\.host: missing"),
        ({"host": "h", "port": 0}, r"metricsink\.port: expected `int` >= 1; it is 0"),
        ({"host": "h", "protocol": "udp"}, r"metricsink\.protocol: .*'udp'"),
        ({"host": "h", "prefix": "a b"}, r"prefix 'a b' is not a Graphite name"),
        ({"host": "h", "prefix": ".a"}, "prefix '.a' is not a Graphite name"),
    ],
)
def test_option_out_of_range_is_refused(options: dict[str, object], message: str) -> None:
    """The error appears before any process starts."""
    with pytest.raises(ConfigError, match=message):
        GraphiteSink.open(options)


def test_check_names_the_server_that_does_not_answer() -> None:
    """The likely mistakes are a wrong host and a wrong port."""
    port = free_port()
    with pytest.raises(SinkError, match=rf"127\.0\.0\.1:{port} does not answer.*are host and port right"):
        GraphiteSink.open({"host": "127.0.0.1", "port": port}).check(1.0)
