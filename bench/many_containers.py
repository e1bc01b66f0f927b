"""Measure the topology manager of a large topology: its process and its messages are real, stream managers are not."""

from __future__ import annotations

import resource
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from bench.bench_kind import Bench
from bench.findings import Findings, Pace, median_row
from bench.job import Job
from bench.records import BenchError
from heron.api.definition import TopologyDefinition
from heron.clock import monotonic_s
from heron.driver_kit.loading import open_driver
from heron.ipc import control_pb2 as pb
from heron.ipc.envelope import Envelope, body_of, control_frame, parse_control
from heron.ipc.keys import ClientKind, TopologyKeys, new_keys
from heron.ipc.socket import Channel, SocketContext
from heron.kernel.role_spec import TManagerSpec, write_spec
from heron.kernel.settings import EngineSettings
from heron.planner.packing_plan import PackingPlan
from heron.spi.driver import DriverRef
from heron.spi.packing import Packing
from heron.spi.statemgr import NodeKind, StateManager
from heron.state_nodes.plans import decode_physical_plan, encode_plan
from heron.state_nodes.tmanager_location import decode_tmanager_location

__all__ = ["ManyContainers"]

_CONTAINERS = 1_000
_TASKS = 10_000
_SOCKETS = 500  # of a context, which has one I/O thread
_WITHIN_S = 60.0
_LEAST_PLAN_BYTES = 10_000
_HEARTBEATS_S = 10.0  # the window of the heartbeats at the usual pace
_PACKING = DriverRef("packing", "roundrobin", "heron_packing_roundrobin:RoundRobinPacking", {})
_STATE = "heron_statemgr_localfs.state_manager:LocalFsStateManager"


@dataclass(frozen=True)
class ManyContainers(Bench):
    """1,000 containers with 10,000 tasks."""

    name: str

    def run(self, pace: Pace) -> Findings:
        """See `Bench.run`."""
        _, most_files = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, most_files))  # processes inherit it
        found: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
        spouts = str(_TASKS // 2)
        job = Job("simplified_word_count", ("--spouts", spouts, "--bolts", spouts, "--containers", str(_CONTAINERS)))
        for _ in range(max(1, pace.pairs // 2)):
            start_s = monotonic_s()
            definition = job.definition()
            packing = open_driver(_PACKING, Packing).pack(definition)
            found["packing plan computed", "s"].append(monotonic_s() - start_s)
            with tempfile.TemporaryDirectory(prefix="hb-many-") as folder:
                topology = _Topology(Path(folder), pace.engine.python, definition, packing)
                with topology.led() as stmgrs:
                    found["last registration to last plan", "s"].append(stmgrs.register())
                    found["heartbeats", "cores"].append(
                        stmgrs.send_heartbeats(_HEARTBEATS_S * pace.window_s / Pace().window_s)
                    )
                    found["topology manager, largest", "MiB resident"].append(stmgrs.largest_bytes() / 2**20)
                with topology.led() as stmgrs:
                    found["new leader: last registration to last plan", "s"].append(stmgrs.register())
        findings = Findings()
        for (subject, unit), values in found.items():
            findings.rows.append(median_row(self.name, subject, unit, values))
        return findings


class _StreamManagers:
    """One connection for each container, with the messages of a stream manager whose tasks have no reports."""

    def __init__(self, endpoint: str, keys: TopologyKeys, leader: psutil.Process) -> None:
        self._leader = leader
        self._contexts = [SocketContext(max_frame_bytes=-1) for _ in range(0, _CONTAINERS, _SOCKETS)]
        member = keys.connecting_as(ClientKind.MEMBER)
        self._channels: list[Channel] = [
            self._contexts[number // _SOCKETS].client_of(endpoint, keys=member) for number in range(_CONTAINERS)
        ]

    def close(self) -> None:
        for each in self._contexts:
            each.close()

    def register(self) -> float:
        """Register all; return the seconds from the last registration until the last one has the plan."""
        for container_id, channel in enumerate(self._channels, 1):
            hello = pb.StmgrHello(
                container_id=container_id, incarnation=1, endpoint=f"tcp://10.0.0.1:{container_id}", host="here", pid=1
            )
            channel.send(control_frame(Envelope(stmgr_hello=hello)))
        start_s = monotonic_s()
        plans = {self._plan_of(channel, start_s + _WITHIN_S) for channel in self._channels}
        took_s = monotonic_s() - start_s
        if len(plans) != 1:
            msg = f"the stream managers got {len(plans)} different plans"
            raise BenchError(msg)
        plan = decode_physical_plan(parse_control(plans.pop()).plan.document, "the topology manager")
        if (len(plan.stmgrs), len(plan.tasks)) != (_CONTAINERS, _TASKS):
            msg = f"the plan has {len(plan.stmgrs)} stream managers and {len(plan.tasks)} tasks"
            raise BenchError(msg)
        return took_s

    def send_heartbeats(self, window_s: float) -> float:
        """Send heartbeats at the usual pace; return the cores that the topology manager uses."""
        period_s = EngineSettings().heartbeat_s
        before, start_s = self._leader.cpu_times(), monotonic_s()
        for number in range(int(window_s / period_s * _CONTAINERS)):
            container = number % _CONTAINERS
            heartbeat = pb.Heartbeat(container_id=container + 1, incarnation=1)
            self._channels[container].send(control_frame(Envelope(heartbeat=heartbeat)))
            time.sleep(max(0.0, start_s + number * period_s / _CONTAINERS - monotonic_s()))
        after, took_s = self._leader.cpu_times(), monotonic_s() - start_s
        return (after.user + after.system - before.user - before.system) / took_s

    def largest_bytes(self) -> int:
        """Return the largest resident memory that the topology manager has had. Linux only."""
        status = Path(f"/proc/{self._leader.pid}/status").read_text(encoding="utf-8")
        return int(status.partition("VmHWM:")[2].split()[0]) * 1024

    @staticmethod
    def _plan_of(channel: Channel, deadline_s: float) -> bytes:
        """Return the next frame that is a plan. Only a small frame is decoded: a thousand large ones take seconds."""
        while channel.wait(max(0.0, deadline_s - monotonic_s())):
            frame = channel.receive() or b""
            if len(frame) >= _LEAST_PLAN_BYTES:
                return frame
            if body_of(envelope := parse_control(frame)) == "refused":
                msg = f"a stream manager was refused: {envelope.refused.reason}"
                raise BenchError(msg)
        msg = f"a stream manager got no plan within {_WITHIN_S:g} s"
        raise BenchError(msg)


class _Topology:
    """A submitted topology in a folder of its own."""

    def __init__(self, folder: Path, python: str, definition: TopologyDefinition, packing: PackingPlan) -> None:
        self._folder, self._python = folder, python
        self._definition, self._packing = definition, packing
        self._keys = new_keys()
        self._state = DriverRef("statemgr", "localfs", _STATE, {"root": str(folder / "state")})

    @contextmanager
    def led(self) -> Iterator[_StreamManagers]:
        """Run a topology manager until it leads; yield the stream managers. It takes over from the one before."""
        keys, name = self._keys, self._definition.name
        spec = TManagerSpec(
            name, f"{name}-1", 0, 1, str(self._folder), str(self._folder), self._state, keys.listening_to(*ClientKind)
        )
        (self._folder / "c0").mkdir(exist_ok=True)
        write_spec(self._folder / "tmanager.json", spec)
        with closing(open_driver(self._state, StateManager)) as state:
            state.set(NodeKind.TOPOLOGY, name, encode_plan(self._definition))
            state.set(NodeKind.PACKING_PLAN, name, encode_plan(self._packing))
            command = [self._python, "-m", "heron.tmanager.main", str(self._folder / "tmanager.json")]
            process = subprocess.Popen(command)
            try:
                endpoint = self._endpoint(state, name, process.pid)
                with closing(_StreamManagers(endpoint, keys, psutil.Process(process.pid))) as stmgrs:
                    yield stmgrs
            finally:
                process.kill()
                process.wait()

    @staticmethod
    def _endpoint(state: StateManager, name: str, pid: int) -> str:
        deadline_s = monotonic_s() + _WITHIN_S
        while monotonic_s() < deadline_s:
            node = state.get(NodeKind.TMANAGER_LOCATION, name)
            if node and (location := decode_tmanager_location(node.value, name)).pid == pid:
                return location.endpoint
            time.sleep(0.02)
        msg = f"no topology manager leads within {_WITHIN_S:g} s"
        raise BenchError(msg)
