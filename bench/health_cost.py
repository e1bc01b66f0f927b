"""Measure the health manager: its processor time and its memory for a topology of a size.

Its process, the socket with its encryption, the state manager and the policy are real. The topology is not: another
process answers for its topology manager, with as many values as a real one.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections import defaultdict
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import psutil

from bench.bench_kind import Bench
from bench.findings import Findings, Pace, median_row
from bench.named_topologies import answering, cores, running
from bench.records import BenchError
from bench.topologies_in_name_only import STATE_DRIVER
from heron.clock import monotonic_s
from heron.driver_kit.loading import open_driver
from heron.ipc.keys import ClientKind
from heron.kernel.role_spec import ServiceProcessSpec, write_spec
from heron.spi.driver import DriverRef
from heron.spi.statemgr import NodeKind, StateManager
from heron.state_nodes.health_records import HealthRecords, decode_health_records
from heron.state_nodes.topology_keys import decode_keys

__all__ = ["HealthCost"]

_TOPOLOGY = "load-00"
_WITHIN_S = 240.0
_WINDOW_S = 40.0  # at the usual pace; with 10,000 tasks it has two rounds
_SETTLED_S = 20.0


@dataclass(frozen=True)
class HealthCost(Bench):
    """A health manager with the policy `ds2` and its usual rhythm; one row for each number of tasks."""

    name: str
    sizes: tuple[int, ...]

    def run(self, pace: Pace) -> Findings:
        """See `Bench.run`."""
        found: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
        for _ in range(max(1, pace.pairs // 2)):
            for tasks in self.sizes:
                share, resident_bytes = _cost(pace, tasks)
                found[f"{tasks} tasks", "cores"].append(share)
                found[f"{tasks} tasks, memory", "MiB resident"].append(resident_bytes / 2**20)
        findings = Findings()
        for (subject, unit), values in found.items():
            findings.rows.append(median_row(self.name, subject, unit, values))
        return findings


def _cost(pace: Pace, tasks: int) -> tuple[float, float]:
    """The cores that it uses, and its largest resident memory so far, after it has begun to decide."""
    with tempfile.TemporaryDirectory(prefix="hb-health-") as folder:
        home = Path(folder)
        statemgr = DriverRef("statemgr", "localfs", STATE_DRIVER, {"root": str(home / "state")})
        with answering(pace, home, 1, tasks), closing(open_driver(statemgr, StateManager)) as state:
            write_spec(home / "health.spec", _spec(state, statemgr, home))
            words = [pace.engine.python, "-m", "heron_health_manager.manager_process", str(home / "health.spec")]
            with running(words, pace, home) as started:
                process = psutil.Process(started.pid)
                _wait_for_advice(state, started)
                time.sleep(_SETTLED_S)
                share = cores(process, _WINDOW_S * pace.window_s / Pace().window_s)
                return share, _largest_bytes(process)


def _spec(state: StateManager, statemgr: DriverRef, home: Path) -> ServiceProcessSpec:
    keys = state.get(NodeKind.KEYS, _TOPOLOGY)
    if keys is None:
        msg = f"topology {_TOPOLOGY!r} has no keys"
        raise BenchError(msg)
    return ServiceProcessSpec(
        topology=_TOPOLOGY,
        topology_id=f"{_TOPOLOGY}-1",
        container_id=0,
        incarnation=1,
        run_dir=str(home),
        log_dir=str(home),
        keys=decode_keys(keys.value, _TOPOLOGY).connecting_as(ClientKind.READER),
        drivers=(
            statemgr,
            DriverRef("scheduler", "local", "heron_scheduler_local.scheduler:LocalScheduler"),
            DriverRef("health", "ds2", "heron_health_manager.ds2_policy:Ds2Policy"),
        ),
        options={"section": {"mode": "advise"}, "profile": "load"},
        settings={"heron.metrics.export.s": 1},
    )


def _wait_for_advice(state: StateManager, process: subprocess.Popen[str]) -> None:
    """Waits until it has decided for the first time: the bolts have time to spare."""
    deadline_s, records = monotonic_s() + _WITHIN_S, HealthRecords("")
    while monotonic_s() < deadline_s and process.poll() is None:
        if (node := state.get(NodeKind.HEALTH, _TOPOLOGY)) is not None:
            records = decode_health_records(node.value, _TOPOLOGY)
            if records.decisions:
                return
        time.sleep(0.5)
    msg = f"the health manager does not advise within {_WITHIN_S:g} s; its problem: {records.problem or 'none'}"
    raise BenchError(msg)


def _largest_bytes(process: psutil.Process) -> int:
    """Its largest resident memory so far."""
    status = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
    return next(1024 * int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))
