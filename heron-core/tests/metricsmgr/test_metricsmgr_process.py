"""The metrics manager as a process: it passes records to a file sink and to the topology manager."""

from __future__ import annotations

import itertools
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from heron.ipc import control_pb2 as pb
from heron.ipc.endpoint import executor_endpoint, metricsmgr_endpoint
from heron.ipc.envelope import Envelope, body_of, control_frame, parse_control
from heron.ipc.keys import ClientKind, new_keys
from heron.ipc.reactor import Reactor
from heron.ipc.socket import Hub, SocketContext
from heron.kernel.process_keys import ProcessKeys
from heron.kernel.role_spec import MetricsmgrSpec, write_spec
from heron.metricsmgr.main import _drain, collect
from heron.spi.driver import DriverRef
from heron_testing.waiting import Eventually


@pytest.fixture
def sockets() -> Iterator[SocketContext]:
    """Closed at the end."""
    found = SocketContext(max_frame_bytes=-1)
    yield found
    found.close()


@pytest.fixture
def metricsmgr(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A metrics manager of container 1 with a file sink and a sink that does not exist."""
    (tmp_path / "c1").mkdir()
    sinks = (
        DriverRef("metricsink", "none", "heron_metricsink_none:Sink"),
        DriverRef(
            "metricsink", "file", "heron_metricsink_file.sink:FileSink", {"directory": str(tmp_path / "metrics")}
        ),
    )
    keys = (new_keys().connecting_as(ClientKind.MEMBER),)
    spec = MetricsmgrSpec("wc", 1, 1, str(tmp_path), str(tmp_path), keys, sinks, {"heron.metrics.export.s": 0.1})
    write_spec(tmp_path / "spec.json", spec)
    process = subprocess.Popen([sys.executable, "-m", "heron.metricsmgr.main", str(tmp_path / "spec.json")])
    yield process
    process.kill()
    process.wait()


def test_records_that_have_arrived_are_processed_after_the_time_to_drain(
    tmp_path: Path, sockets: SocketContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine the time may pass before the metrics manager runs."""
    (tmp_path / "c1").mkdir()
    keys = (new_keys().connecting_as(ClientKind.MEMBER),)
    reactor = Reactor()
    spec = MetricsmgrSpec("wc", 1, 1, str(tmp_path), str(tmp_path), keys, (), {})
    manager = collect(spec, reactor, sockets, ProcessKeys(spec, lambda: spec))
    sockets.push_to(metricsmgr_endpoint(tmp_path, 1)).send(record("late"))
    assert manager._inbox.raw.poll(10_000), "nothing came"
    monkeypatch.setattr("heron.metricsmgr.main.monotonic_s", itertools.count().__next__)  # a second for each look
    _drain(manager, reactor)
    assert manager.arrived == 1


def record(process: str) -> bytes:
    """A record of one counter."""
    metric = pb.Metric(name="execute-count", kind="counter", unit="tuples", value=42)
    publish = pb.MetricsPublish(topology="wc", container_id=1, process=process, at_s=1.0, metrics=[metric])
    return control_frame(Envelope(metrics_publish=publish))


def processes(hub: Hub, seen: set[str]) -> set[str]:
    """The processes whose records the topology manager has received so far."""
    while (message := hub.receive()) is not None:
        envelope = parse_control(message[1])
        assert body_of(envelope) == "metrics_publish"
        seen.add(envelope.metrics_publish.process)
    return seen


def test_records_reach_the_sink_and_a_topology_manager_that_starts_later(
    tmp_path: Path, sockets: SocketContext, metricsmgr: subprocess.Popen[bytes], eventually: Eventually
) -> None:
    """The events of the first second must not be lost because the topology manager starts later."""
    push = sockets.push_to(metricsmgr_endpoint(tmp_path, 1))
    push.send(record("early"))
    push.send(b"garbage")
    metrics = tmp_path / "metrics"
    eventually(lambda: any("early" in path.read_text() for path in metrics.glob("*.json*")), what="the file")
    executor = sockets.hub(executor_endpoint(tmp_path, 1))
    tmanager = sockets.hub(f"ipc://{tmp_path}/t")
    message = eventually(executor.receive)
    assert message is not None
    assert body_of(parse_control(message[1])) == "location_request"
    location = pb.TManagerLocation(endpoint=f"ipc://{tmp_path}/t", epoch=1)
    executor.send(message[0], control_frame(Envelope(tmanager_location=location)))
    seen: set[str] = set()
    eventually(lambda: processes(tmanager, seen) >= {"early", "metricsmgr"})
    metricsmgr.send_signal(signal.SIGTERM)
    assert metricsmgr.wait(5.0) == 0
    for socket in (push, executor, tmanager):
        socket.close()


def test_sigterm_drains_the_records_that_have_arrived(
    tmp_path: Path, sockets: SocketContext, metricsmgr: subprocess.Popen[bytes], eventually: Eventually
) -> None:
    """The last metrics of every process arrive shortly before the end of the metrics manager."""
    push = sockets.push_to(metricsmgr_endpoint(tmp_path, 1))
    push.send(record("first"))
    metrics = tmp_path / "metrics"
    eventually(lambda: any("first" in path.read_text() for path in metrics.glob("*.json*")), what="the file")
    metricsmgr.send_signal(signal.SIGSTOP)
    for number in range(50):
        push.send(record(f"late-{number}"))
    metricsmgr.send_signal(signal.SIGTERM)
    metricsmgr.send_signal(signal.SIGCONT)
    assert metricsmgr.wait(5.0) == 0
    push.close()
    text = "".join(path.read_text() for path in metrics.glob("*.json*"))
    assert [number for number in range(50) if f'"late-{number}"' not in text] == []
    assert "sink left out" in (tmp_path / "metricsmgr-1.log").read_text()
