"""The metrics manager reports the state of its sinks to the topology manager."""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Self

import pytest

from heron.executor.container_keys import ContainerKeys
from heron.ipc import control_pb2 as pb
from heron.ipc.documents.metric_names import SINK_OUTAGE
from heron.ipc.endpoint import executor_endpoint, metricsmgr_endpoint
from heron.ipc.envelope import Envelope, control_frame, parse_control
from heron.ipc.frames.metrics_codec import record_of
from heron.ipc.keys import KeyRing, new_keys
from heron.ipc.reactor import Reactor
from heron.ipc.socket import Hub, SocketContext
from heron.metricsmgr.metrics_manager import MetricsForwarder, MetricsManager
from heron.metricsmgr.sink_runner import HANG_S, SinkRunner
from heron.spi.metricsink import MetricsRecord, MetricsSink, Source
from heron_testing.fake_clock import FakeClock
from heron_testing.waiting import Eventually

SOURCE = Source("wc", 1, "metricsmgr", 1)


class HangingSink(MetricsSink):
    """A sink whose `process` returns when the test allows it."""

    spi_version = 1

    def __init__(self) -> None:
        self.called, self.go_on = threading.Event(), threading.Event()
        self.records: list[MetricsRecord] = []

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        assert not options
        return cls()

    def process(self, record: MetricsRecord) -> None:
        self.called.set()
        self.go_on.wait(10.0)
        self.records.append(record)

    def flush(self) -> None:
        """Nothing is kept."""

    def close(self) -> None:
        """Nothing is open."""


@pytest.fixture
def run_dir() -> Iterator[Path]:
    """A directory with a path that is short enough for sockets."""
    made = Path(tempfile.mkdtemp(prefix="hw"))
    (made / "c1").mkdir()
    yield made
    shutil.rmtree(made)


@pytest.fixture
def sockets() -> Iterator[SocketContext]:
    """Closed at the end."""
    made = SocketContext(max_frame_bytes=-1)
    yield made
    made.close()


def reasons(tmanager: Hub, seen: list[str]) -> list[str]:
    """The reasons in the records that the topology manager has received; "" for a sink that works."""
    while (message := tmanager.receive()) is not None:
        record = record_of(parse_control(message[1]).metrics_publish)
        seen.extend(each.labels.get("reason", "") for each in record.metrics if each.name == SINK_OUTAGE)
    return seen


def test_the_topology_manager_learns_at_once_that_a_sink_hangs_and_that_it_works_again(
    run_dir: Path, sockets: SocketContext, eventually: Eventually
) -> None:
    """The export period may be a minute, and an operator must not wait for it. Sinks do not get the reason."""
    executor, tmanager = sockets.hub(executor_endpoint(run_dir, 1)), sockets.hub(f"ipc://{run_dir}/t")
    reactor, clock, sink = Reactor(), FakeClock(), HangingSink()
    forwarder = MetricsForwarder(
        reactor, sockets, executor_endpoint(run_dir, 1), ContainerKeys(KeyRing.of(new_keys()), 1)
    )
    runner = SinkRunner("graphite", lambda: sink, 60.0, clock=clock)
    manager = MetricsManager(sockets.inbox(metricsmgr_endpoint(run_dir, 1)), (runner,), forwarder, SOURCE)
    client, _ = eventually(executor.receive) or (b"", b"")
    location = pb.TManagerLocation(endpoint=f"ipc://{run_dir}/t", epoch=1)
    executor.send(client, control_frame(Envelope(tmanager_location=location)))
    seen: list[str] = []

    def received(*expected: str) -> bool:
        reactor.run_once(0.0)
        return reasons(tmanager, seen) == list(expected)

    manager.report()
    assert sink.called.wait(5.0)
    manager.check_sinks()
    eventually(lambda: received(""))
    clock.advance(HANG_S)
    manager.check_sinks()
    manager.check_sinks()
    hangs = "process has not returned for more than 8 s"
    eventually(lambda: received("", hangs))
    sink.go_on.set()
    eventually(lambda: runner.problem() == "")
    manager.check_sinks()
    eventually(lambda: received("", hangs, ""))
    runner.close()
    assert runner.join(5.0)
    assert [each.labels for record in sink.records for each in record.metrics if each.name == SINK_OUTAGE] == [
        {"sink": "graphite"}
    ] * len(sink.records)
