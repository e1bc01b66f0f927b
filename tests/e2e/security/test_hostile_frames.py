"""Frames that break the protocol, at a thousand a second to the sockets of every process: all of them are refused."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

import pytest
from decoders import data_frames, golden

from heron.clock import monotonic_s
from heron.driver_kit.loading import open_driver
from heron.ipc.frames.frame import FrameKind, frame_header
from heron.ipc.keys import ClientKind, TopologyKeys
from heron.ipc.query import TManagerClient
from heron.ipc.socket import SocketContext
from heron.spi.driver import DriverRef
from heron.spi.statemgr import NodeKind, StateManager
from heron.state_nodes.plans import decode_physical_plan
from heron.state_nodes.tmanager_location import decode_tmanager_location
from heron.state_nodes.topology_keys import decode_keys
from heron_testing.hostile_bytes import mutants

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox

_DRIVER = "heron_statemgr_localfs.state_manager:LocalFsStateManager"
RATE_PER_S = 1000
PAUSE_S = 0.01
GROWTH_BYTES = 32 << 20
LOG_BYTES = 2 << 20
ROLES = ("executor", "tmanager", "stmgr", "metricsmgr", "instance")
VALID = ("control-peer-hello.bin", "control-metrics-publish.bin", "control-location-request.bin")
"""Messages that a member may send: a peer with the key of the topology is trusted with them."""

Send = Callable[[bytes], object]


@pytest.mark.parametrize(
    ("frames", "share"),
    [(2000, 0.0), pytest.param(100_000, 0.9, marks=[pytest.mark.soak, pytest.mark.timeout(1500)])],
)
def test_hostile_frames_change_nothing(sandbox: Sandbox, frames: int, share: float) -> None:
    """No process dies or grows, nothing is delivered, data goes on, and the refusals are counted.

    The long form also compares the rate of data with that before; a short one is too noisy for it.
    """
    run = sandbox.start("steady.py")
    run.until((run.out / "progress").exists, "the first counts")
    keys, endpoint, peers = _places(sandbox)
    quiet_per_s = _rate(run, 3.0) if share else 0.0
    before = _processes(run)
    sockets = SocketContext(max_frame_bytes=-1)
    try:
        begun_s, seen = monotonic_s(), _seen(run)
        _attack(_targets(sandbox, sockets, keys, endpoint, peers), frames)
        took_s = monotonic_s() - begun_s
        run.grows(lambda: _seen(run), "data after the attack")
        rate_per_s = (_seen(run) - seen) / (monotonic_s() - begun_s)
    finally:
        sockets.close()
    after = _processes(run)
    assert after.keys() == before.keys(), "a process has died"
    grown = {pid: size - before[pid] for pid, size in after.items() if size - before[pid] > GROWTH_BYTES}
    assert not grown, grown
    assert rate_per_s >= share * quiet_per_s, (rate_per_s, quiet_per_s, took_s)
    counted = _violations(keys, endpoint, run)
    assert sum(counted.values()) > frames // 20, counted
    assert {"stmgr", "tmanager", "metricsmgr", "executor"} <= {process for process, _ in counted}, counted
    logged = {path.name: path.stat().st_size for path in sandbox.root.rglob("*.log")}
    assert max(logged.values()) < LOG_BYTES, logged
    (run.out / "stop").touch()
    report = run.finished()
    emitted = report.components["numbers"].emitted
    (rows,) = run.results("count").values()
    seen_in_all: list[object] = [*rows]
    assert seen_in_all == [emitted], "something was delivered, or lost"


def _places(sandbox: Sandbox) -> tuple[TopologyKeys, str, list[str]]:
    """The keys, the address of the topology manager, and those of the stream managers."""
    root: dict[str, object] = {"root": str(sandbox.home / ".heron" / "state")}
    state = open_driver(DriverRef("statemgr", "localfs", _DRIVER, root), StateManager)
    try:
        found = {kind: state.get(kind, "steady") for kind in _NODES}
    finally:
        state.close()
    keys, location, plan = (node.value for node in found.values() if node is not None)
    peers = [each.endpoint for each in decode_physical_plan(plan, "the plan").stmgrs]
    return decode_keys(keys, "steady"), decode_tmanager_location(location, "steady").endpoint, peers


_NODES = (NodeKind.KEYS, NodeKind.TMANAGER_LOCATION, NodeKind.PHYSICAL_PLAN)


def _targets(
    sandbox: Sandbox, sockets: SocketContext, keys: TopologyKeys, endpoint: str, peers: Sequence[str]
) -> list[tuple[Send, Iterator[bytes]]]:
    """How to send to each socket, and the frames for it."""
    draw = random.Random(7)  # a failure must be repeatable
    control = [each for each in golden("control-*.bin") if each not in golden(*VALID)]
    data = [*data_frames(), frame_header(FrameKind.DATA, 1, 1), *golden("frame-*.bin")]
    everything, no_control = mutants([*data, *control], draw), mutants(data, draw)
    found: list[tuple[Send, Iterator[bytes]]] = []
    for path in sorted(each for each in sandbox.root.rglob("*") if each.is_socket()):
        if path.name in ("executor", "stmgr"):
            found.append((sockets.client_of(f"ipc://{path}").send, everything))
        elif path.name == "metricsmgr":
            found.append((sockets.push_to(f"ipc://{path}").send, everything))
        elif path.name.startswith("i"):
            found.append((sockets.channel_to(f"ipc://{path}").send, everything))
    reader, member = keys.connecting_as(ClientKind.READER), keys.connecting_as(ClientKind.MEMBER)
    found.append((sockets.client_of(endpoint, keys=reader).send, everything))
    found += [(sockets.client_of(each, keys=member).send, no_control) for each in (endpoint, *peers)]
    return found


def _attack(targets: Sequence[tuple[Send, Iterator[bytes]]], frames: int) -> None:
    """Send this number of frames to each kind of process, at `RATE_PER_S` in all."""
    pause, sent, begun_s = threading.Event(), 0, monotonic_s()
    while sent < frames:
        for send, source in targets:
            for frame in islice(source, 2):
                if frame[1:2] != bytes((FrameKind.CONTROL,)) or len(frame) > 16:
                    send(frame)
                sent += 1
        while sent > (monotonic_s() - begun_s) * RATE_PER_S:
            pause.wait(PAUSE_S)


def _processes(run: HeronRun) -> dict[int, int]:
    """The resident bytes of each process of the topology, by process id."""
    return {each.pid: each.memory_info().rss for role in ROLES for each in run.processes(role)}


def _seen(run: HeronRun) -> int:
    """The tuples that the last task has counted."""
    words = (run.out / "progress").read_text(encoding="utf-8").split()
    return int(words[1]) if len(words) > 1 else 0


def _rate(run: HeronRun, seconds: float) -> float:
    """The tuples per second that the last task counts, over some seconds."""
    begun_s, seen = monotonic_s(), _seen(run)
    run.until(lambda: monotonic_s() - begun_s > seconds, "some seconds of data")
    return (_seen(run) - seen) / (monotonic_s() - begun_s)


def _violations(keys: TopologyKeys, endpoint: str, run: HeronRun) -> dict[tuple[str, str], float]:
    """The counted violations by role and kind, once every role has reported some."""
    found: dict[tuple[str, str], float] = {}

    def look() -> bool:
        with TManagerClient(endpoint, keys.connecting_as(ClientKind.READER)) as reader:
            for row in reader.metrics("", 0, by_task=True, timeout_s=20.0):
                if row.name == "protocol-violations":
                    found[row.process.partition("-")[0], row.labels["kind"]] = row.value
        return len({role for role, _ in found}) >= 4

    run.until(look, "the counts of violations")
    return found
