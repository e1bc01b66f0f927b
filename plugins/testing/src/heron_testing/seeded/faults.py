"""The faults of a run. They are drawn before it begins, so that a failing run can be repeated with fewer of them."""

from __future__ import annotations

import enum
import itertools
import random
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from heron_testing.seeded.commands import change_code, update

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from heron.planner.packing_plan import PackingPlan
    from heron_testing.seeded.cluster import Cluster
    from heron_testing.seeded.process import SimulatedProcess

__all__ = [
    "FIRST_FAULT_S",
    "HARMLESS",
    "OF_CHECKPOINTS",
    "Fault",
    "FaultKind",
    "FaultTargets",
    "Faults",
    "draw_code_change",
    "draw_faults",
    "targets_of",
]

FIRST_FAULT_S = 0.3
"""The topology starts before this time."""


class FaultKind(enum.StrEnum):
    """What happens."""

    KILL = "kill"
    STOP = "stop"
    CUT = "cut"
    RESET = "reset"
    SLOW = "slow"
    STORE_AWAY = "store-away"
    LEASE = "lease"
    CLOCK = "clock"
    DISK_FULL = "disk-full"
    """The checkpoint store takes nothing from one machine, or from any."""
    STORE_SLOW = "store-slow"
    """Each call of the checkpoint store takes up to some tenths of a second."""
    UPDATE = "update"
    """No fault, but what faults happen to: the command asks for another number of tasks."""
    CODE = "code"
    """Likewise: the command gives a component new code, all of its tasks or one first."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault; `target` is a process (``c1/stmgr``), machines (none: all), or a component and its tasks."""

    at_s: float
    kind: FaultKind
    target: str = ""
    lasts_s: float = 0.0

    @property
    def ends_sessions(self) -> bool:
        """Whether it may end a session of two processes: at once, or because a link breaks that is silent for long."""
        return self.kind in _END_SESSIONS or self.lasts_s > _SILENT_S

    def __str__(self) -> str:
        lasts = f" for {self.lasts_s:g} s" if self.lasts_s else ""
        return f"at {self.at_s:.3f} s: {self.kind.value} {self.target}{lasts}".rstrip()


HARMLESS = (
    FaultKind.SLOW,
    FaultKind.STORE_AWAY,
    FaultKind.STORE_SLOW,
    FaultKind.LEASE,
    FaultKind.CLOCK,
    FaultKind.UPDATE,
    FaultKind.CODE,
)
"""The kinds that neither lose a tuple nor repeat one, in any mode."""
OF_CHECKPOINTS = (FaultKind.DISK_FULL, FaultKind.STORE_SLOW)
"""The kinds without an effect where no checkpoints are taken."""
_CODE = ("split", "count", "broken", "split canary", "count canary", "broken canary")


@dataclass(frozen=True, slots=True)
class FaultTargets:
    """What faults may happen to: processes, machines, and updates (a component and its tasks)."""

    processes: tuple[str, ...]
    machines: tuple[str, ...]
    updates: tuple[str, ...]
    long_share: float = 0.2
    """The share of faults that last for a time of `long_s`."""
    long_s: tuple[float, float] = (1.5, 25.0)
    """The shortest and the longest of these: some last longer than a lease and than the timeout of links."""
    from_s: float = FIRST_FAULT_S
    """The earliest time of a fault."""
    together_s: float = 0.0
    """If it is not 0, all faults of a run come within this time."""

    def of(self, kind: FaultKind) -> tuple[str, ...]:
        """The targets of a kind; empty for a fault of the whole cluster."""
        pairs = tuple(" ".join(each) for each in itertools.combinations(self.machines, 2))
        return {
            FaultKind.KILL: self.processes,
            FaultKind.STOP: self.processes,
            FaultKind.CUT: pairs,
            FaultKind.RESET: pairs,
            FaultKind.SLOW: self.machines,
            FaultKind.CLOCK: self.machines,
            FaultKind.DISK_FULL: ("", *self.machines),
            FaultKind.UPDATE: self.updates,
        }.get(kind, ())


_KINDS = {
    FaultKind.KILL: 12,
    FaultKind.STOP: 4,
    FaultKind.CUT: 3,
    FaultKind.RESET: 5,
    FaultKind.SLOW: 5,
    FaultKind.STORE_AWAY: 2,
    FaultKind.LEASE: 2,
    FaultKind.CLOCK: 1,
    FaultKind.DISK_FULL: 3,
    FaultKind.STORE_SLOW: 3,
    FaultKind.UPDATE: 4,
}
_INSTANTS = frozenset({FaultKind.KILL, FaultKind.RESET, FaultKind.LEASE, FaultKind.CLOCK, FaultKind.UPDATE})
_END_SESSIONS = frozenset({FaultKind.KILL, FaultKind.RESET, FaultKind.UPDATE, FaultKind.CODE})
_SILENT_S = 10.0
_STORE_BACK_S = 2.2
_STALL_S = 0.4
_SLOW_S = 0.3  # the longest additional delay of a message, or of a call of the checkpoint store
_JUMP_S = 3600.0


def targets_of(packing: PackingPlan, updates: tuple[str, ...]) -> FaultTargets:
    """The targets in a cluster with a standby in its first container."""
    first = min(each.container_id for each in packing.containers)
    tasks = (f"c{container_id}/{each.component}-{each.task_id}" for container_id, each in packing.instances())
    numbers = [each.container_id for each in packing.containers]
    engine = (f"c{number}/{name}" for number in numbers for name in ("stmgr", "executor"))
    leaders = ("c0/tmanager", "c0/executor", f"c{first}/tmanager")
    machines = ("c0", *(f"c{number}" for number in numbers))
    return FaultTargets((*leaders, *engine, *tasks), machines, updates)


def draw_faults(
    seed: int, targets: FaultTargets, *, within_s: float, most: int = 8, kinds: Collection[FaultKind] = tuple(FaultKind)
) -> tuple[Fault, ...]:
    """The faults of a seed, of these kinds, in the order of their times."""
    draw = random.Random(f"faults {seed}")
    chosen = {each: _KINDS[each] for each in _KINDS if each in kinds and (targets.updates or each != FaultKind.UPDATE)}
    if targets.together_s:
        from_s = draw.uniform(targets.from_s, within_s)
        targets, within_s = replace(targets, from_s=from_s), from_s + targets.together_s
    faults = [_draw_fault(draw, chosen, targets, within_s) for _ in range(draw.randint(1, most))]
    return tuple(sorted(faults, key=lambda each: each.at_s))


def draw_code_change(seed: int, *, with_state: bool, within_s: float) -> Fault:
    """The change of code of a seed; `with_state` also of the spout, which cannot begin again without it."""
    draw = random.Random(f"code {seed}")
    targets = (*_CODE, "sentences", "sentences canary") if with_state else _CODE
    return Fault(round(draw.uniform(FIRST_FAULT_S, within_s), 3), FaultKind.CODE, draw.choice(targets))


def _draw_fault(draw: random.Random, kinds: Mapping[FaultKind, int], targets: FaultTargets, within_s: float) -> Fault:
    kind = draw.choices(tuple(kinds), tuple(kinds.values()))[0]
    at_s, lasts_s = draw.uniform(targets.from_s, within_s), draw.uniform(0.01, 1.5)
    if kind is FaultKind.STORE_AWAY:  # it is back when the topology ends: see decision 104
        at_s = draw.uniform(FIRST_FAULT_S, _STORE_BACK_S)
        lasts_s = draw.uniform(0.0, _STORE_BACK_S - at_s)
    elif draw.random() < targets.long_share:
        lasts_s = draw.uniform(*targets.long_s)
    among = targets.of(kind)
    target = draw.choice(among) if among else ""
    return Fault(round(at_s, 3), kind, target, 0.0 if kind in _INSTANTS else round(lasts_s, 3))


class Faults:
    """Carries faults out. A fault of a process that does not live at its time has no effect."""

    def __init__(self, cluster: Cluster) -> None:
        self._world = cluster.world
        self._network = cluster.network
        self._nodes = cluster.nodes
        self._objects = cluster.objects
        self._processes = cluster.processes
        self._topology = cluster.topology
        self._hosts = {each.host.name: each.host for each in cluster.containers}
        self._actions: dict[FaultKind, Callable[[Fault], None]] = {
            FaultKind.KILL: self._kill,
            FaultKind.STOP: self._pause,
            FaultKind.CUT: self._cut,
            FaultKind.RESET: self._reset,
            FaultKind.SLOW: self._slow,
            FaultKind.STORE_AWAY: self._store_away,
            FaultKind.LEASE: self._end_leases,
            FaultKind.CLOCK: self._jump,
            FaultKind.DISK_FULL: self._fill_disk,
            FaultKind.STORE_SLOW: self._slow_checkpoints,
            FaultKind.UPDATE: self._command,
            FaultKind.CODE: self._command,
        }

    def schedule(self, fault: Fault) -> None:
        """Carries a fault out when its time comes."""
        self._world.after(fault.at_s, lambda: self._begin(fault))

    def _begin(self, fault: Fault) -> None:
        self._world.note(f"fault {fault}")
        self._actions[fault.kind](fault)

    def _kill(self, fault: Fault) -> None:
        process = self._processes.living.get(fault.target)
        if process is not None:
            process.kill()

    def _pause(self, fault: Fault) -> None:
        process = self._processes.living.get(fault.target)
        if process is not None and not process.stopped:
            self._stop(process, fault.lasts_s)

    def _cut(self, fault: Fault) -> None:
        one, other = fault.target.split()
        self._network.cut(one, other)
        self._world.after(fault.lasts_s, lambda: self._network.heal(one, other))

    def _reset(self, fault: Fault) -> None:
        """The connections stall before they break, so that something is under way."""
        one, other = fault.target.split()
        self._network.cut(one, other)
        self._world.after(self._world.draw.uniform(0.0, _STALL_S), lambda: self._break(one, other))

    def _break(self, one: str, other: str) -> None:
        self._network.reset(one, other)
        self._network.heal(one, other)

    def _slow(self, fault: Fault) -> None:
        self._network.slow[fault.target] = _SLOW_S
        self._world.after(fault.lasts_s, lambda: self._network.slow.pop(fault.target, None))

    def _store_away(self, fault: Fault) -> None:
        self._nodes.is_away = True
        self._world.after(fault.lasts_s, self._store_is_back)

    def _end_leases(self, _fault: Fault) -> None:
        for hold in tuple(self._nodes.holders.values()):
            self._nodes.expire(hold.process)

    def _jump(self, fault: Fault) -> None:
        self._hosts[fault.target].wall_offset_ns += int(self._world.draw.uniform(-_JUMP_S, _JUMP_S) * 1e9)

    def _fill_disk(self, fault: Fault) -> None:
        self._objects.full.add(fault.target)
        self._world.after(fault.lasts_s, lambda: self._objects.full.discard(fault.target))

    def _slow_checkpoints(self, fault: Fault) -> None:
        self._objects.slow_s = _SLOW_S
        self._world.after(fault.lasts_s, self._objects.be_fast)

    def _command(self, fault: Fault) -> None:
        words = fault.target.split()

        def run(process: SimulatedProcess) -> int:
            if fault.kind is FaultKind.CODE:
                return change_code(process, self._nodes, self._topology, words)
            return update(process, self._nodes, self._topology, words[0], int(words[1]))

        self._processes.start(self._hosts["c0"], f"command at {fault.at_s:g}", run)

    def _stop(self, process: SimulatedProcess, lasts_s: float) -> None:
        process.stop()
        self._world.after(lasts_s, lambda: self._resume(process))
        self._world.after(self._nodes.lease_s, lambda: self._expire_if_stopped(process))
        self._world.after(self._network.link_timeout_s, lambda: self._break_if_stopped(process))

    def _resume(self, process: SimulatedProcess) -> None:
        if not process.killed:
            process.resume()

    def _expire_if_stopped(self, process: SimulatedProcess) -> None:
        if process.stopped and not process.killed:
            self._nodes.expire(process)

    def _break_if_stopped(self, process: SimulatedProcess) -> None:
        if process.stopped and not process.killed:
            for link in tuple(self._network.links):
                if link.is_remote and process in (link.client.process, link.server.process):
                    link.break_off()

    def _store_is_back(self) -> None:
        self._nodes.is_away = False
