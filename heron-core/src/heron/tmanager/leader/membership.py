"""The stream managers of a topology, and the physical plan that follows from their registrations. Pure."""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping
from dataclasses import replace

from heron.api.definition import TopologyDefinition
from heron.errors import HeronError
from heron.planner.code_change import CodeChange, at_package
from heron.planner.key_owners import KeyOwners
from heron.planner.packing_plan import PackingPlan
from heron.planner.physical_plan import (
    CheckpointPlan,
    PhysicalPlan,
    PlanIndex,
    PlanUpdate,
    StreamManagerLocation,
    TopologyState,
    UpdatePhase,
    physical_plan,
)
from heron.planner.plan_update import merged, planned_update, without

__all__ = ["PlanMaker", "Registration", "Registry"]


_Inputs = tuple[
    PackingPlan,
    TopologyDefinition,
    tuple[StreamManagerLocation, ...],
    TopologyState,
    tuple[tuple[str, KeyOwners], ...],
    PlanUpdate | None,
    CheckpointPlan | None,
    CodeChange | None,
]
"""What a plan follows from. When all stream managers register with a new leader, most find it unchanged."""


class Registration(enum.Enum):
    """The effect of a registration on the plan."""

    NEW = "new"
    SAME = "same"
    CHANGED = "changed"
    MOVED = "moved"
    """The same process listens at other ports, because keys rotate."""
    STALE = "stale"
    """A newer incarnation has registered already."""


class _StmgrEntry:
    __slots__ = ("heard_at_s", "location", "silent")

    def __init__(self, location: StreamManagerLocation, now_s: float) -> None:
        self.location = location
        self.heard_at_s = now_s
        self.silent = False


class Registry:
    """Stream managers by container; times are monotonic seconds."""

    def __init__(self, silence_s: float) -> None:
        self._silence_s = silence_s
        self._entries: dict[int, _StmgrEntry] = {}

    def register(self, location: StreamManagerLocation, now_s: float) -> Registration:
        """Takes a registration; a stale one changes nothing."""
        known = self._entries.get(location.container_id)
        if known is not None and location.incarnation < known.location.incarnation:
            return Registration.STALE
        self._entries[location.container_id] = _StmgrEntry(location, now_s)
        if known is None:
            return Registration.NEW
        if known.location == location:
            return Registration.SAME
        same_process = known.location.incarnation == location.incarnation and known.location.pid == location.pid
        return Registration.MOVED if same_process else Registration.CHANGED

    def heard(self, container_id: int, now_s: float) -> bool:
        """Takes a sign of life; returns whether it ends a silence."""
        entry = self._entries.get(container_id)
        if entry is None:
            return False
        was_silent = entry.silent
        entry.heard_at_s = now_s
        entry.silent = False
        return was_silent

    def is_present(self, container_id: int, incarnation: int) -> bool:
        """Whether this incarnation of the stream manager is the registered one."""
        entry = self._entries.get(container_id)
        return entry is not None and entry.location.incarnation == incarnation

    def newly_silent(self, now_s: float) -> tuple[int, ...]:
        """The containers whose stream manager has just exceeded the time limit; each silence is returned once."""
        found = []
        for container_id, entry in self._entries.items():
            if not entry.silent and now_s - entry.heard_at_s >= self._silence_s:
                entry.silent = True
                found.append(container_id)
        return tuple(found)

    def silent(self) -> tuple[int, ...]:
        """The containers whose stream manager has exceeded the time limit."""
        return tuple(sorted(container_id for container_id, entry in self._entries.items() if entry.silent))

    def silent_s(self, longer_than_s: float, now_s: float) -> dict[int, float]:
        """The silence of each stream manager that has been silent for longer than that, by container."""
        silent = {container_id: now_s - entry.heard_at_s for container_id, entry in self._entries.items()}
        return {container_id: seconds for container_id, seconds in silent.items() if seconds > longer_than_s}

    def keep(self, containers: Collection[int]) -> None:
        """Forgets the stream managers of all other containers; a later container of that number begins again."""
        for container_id in self._entries.keys() - set(containers):
            del self._entries[container_id]

    def locations(self) -> dict[int, StreamManagerLocation]:
        """The addresses of the registered stream managers, by container."""
        return {container_id: entry.location for container_id, entry in self._entries.items()}


class PlanMaker:
    """Makes the physical plans of one leader, and keeps the packing plan and the update that they follow."""

    def __init__(
        self,
        definition: TopologyDefinition,
        packing: PackingPlan,
        topology_id: str,
        epoch: int,
        former: PhysicalPlan | None = None,
    ) -> None:
        """`former` is the plan of a former leader."""
        self.definition = former.topology if former else definition
        """The topology of the next plan, except its parallelism, which is that of the packing plan."""
        self._topology_id = topology_id
        self._epoch = epoch
        self._key_owners = dict(former.key_owners) if former else {}
        self.packing = packing
        self.update = former.update if former else None
        self.checkpoints: CheckpointPlan | None = former.checkpoints if former else None
        self.code: CodeChange | None = former.code if former else None
        self.package = former.package if former else ""
        self._made: tuple[PhysicalPlan, _Inputs] | None = None

    def checkpoint_plan(self) -> CheckpointPlan:
        """What the next plan orders for checkpoints.

        Raises:
            HeronError: when the topology takes none.
        """
        if self.checkpoints is None:
            msg = f"topology {self.definition.name!r} has no checkpoints"
            raise HeronError(msg)
        return self.checkpoints

    def taken_over(self, plan: PhysicalPlan) -> PhysicalPlan:
        """A former leader's plan under this leader's epoch, with the same version: no process has to switch."""
        return replace(plan, epoch=self._epoch)

    def prepare(self, index: PlanIndex, target: PackingPlan, owners: Mapping[str, KeyOwners]) -> None:
        """Begins an update: the next plan has the members of both packing plans.

        `owners` are those of key groups, for components whose tasks stay.
        """
        if self.code is None:  # a packing driver does not know packages
            target = replace(at_package(target, self.package), id=target.id)
        update = planned_update(index, target, index.plan.version + 1)
        self.update = replace(update, key_owners={**update.key_owners, **owners})
        self.packing = merged(self.packing, target)

    def switch(self) -> None:
        """Data takes the new routes from the next plan on."""
        if self.update is not None:
            self.update = replace(self.update, phase=UpdatePhase.SWITCH)

    def set_absent(self, absent: tuple[int, ...]) -> None:
        """These tasks do not run and are not restarted."""
        if self.update is not None:
            self.update = replace(self.update, absent=absent)

    def complete(self) -> None:
        """The removed tasks are no members of the next plan, and the update is over."""
        if self.update is not None:
            self._key_owners.update(self.update.key_owners)
            self._end_update(self.update.removed)

    def withdraw(self) -> None:
        """The added tasks are no members of the next plan, and the update is over."""
        if self.update is not None:
            self._end_update(self.update.added)

    def end_code_change(self, *, completed: bool) -> None:
        """All tasks have the new code from the next plan on; else the former code."""
        if self.code is not None and completed:
            self.definition, self.package = self.code.topology, self.code.package
        self.code = None
        self.packing = at_package(self.packing, self.package)

    def next_plan(
        self,
        current: PhysicalPlan | None,
        registered: Mapping[int, StreamManagerLocation],
        state: TopologyState,
    ) -> PhysicalPlan | None:
        """The plan for the present registrations: `current` itself without a change, None while a container is missing.

        A stream manager that has not registered with this leader yet keeps its address in the current plan. Containers
        that an update adds may be missing while it is prepared.
        """
        located = {stmgr.container_id: stmgr for stmgr in current.stmgrs} if current else {}
        located.update(registered)
        if not self.containers(starting=False) <= located.keys():
            return None
        stmgrs = [located[container_id] for container_id in sorted(self.containers()) if container_id in located]
        if current is not None and self._made == (current, self._inputs(stmgrs, state)):
            return current
        plan = self._plan_after(current, stmgrs, state)
        self._made = plan, self._inputs(stmgrs, state)
        return plan

    def _inputs(self, stmgrs: list[StreamManagerLocation], state: TopologyState) -> _Inputs:
        owners = tuple(self._key_owners.items())
        return self.packing, self.definition, tuple(stmgrs), state, owners, self.update, self.checkpoints, self.code

    def _plan_after(
        self, current: PhysicalPlan | None, stmgrs: list[StreamManagerLocation], state: TopologyState
    ) -> PhysicalPlan:
        candidate = physical_plan(
            self.packing,
            self.definition,
            stmgrs,
            version=current.version if current else 0,
            epoch=self._epoch,
            topology_id=self._topology_id,
            state=state,
            leaving=self.update.removed if self.update is not None else (),
        )
        candidate = replace(
            candidate,
            key_owners=dict(self._key_owners),
            update=self.update,
            checkpoints=self.checkpoints,
            package=self.package,
            code=self.code,
        )
        if candidate == current:
            return current
        version = candidate.version + 1
        if self.checkpoints is not None:
            self.checkpoints = self.checkpoints.ordered_by(version)
        return replace(candidate, version=version, checkpoints=self.checkpoints)

    def routed_tasks(self) -> frozenset[int]:
        """The members that data is routed to, and not only prepared."""
        update = self.update
        added = update.added if update is not None and update.phase is UpdatePhase.PREPARE else ()
        return frozenset(each.task_id for _, each in self.packing.instances() if each.task_id not in added)

    def containers(self, *, starting: bool = True) -> set[int]:
        """The containers of the members; without `starting`, only those that are in use while an update is prepared."""
        update = self.update
        if starting or update is None or update.phase is not UpdatePhase.PREPARE:
            return {container.container_id for container in self.packing.containers}
        return {container_id for container_id, each in self.packing.instances() if each.task_id not in update.added}

    def _end_update(self, task_ids: Collection[int]) -> None:
        self.packing = without(self.packing, task_ids)
        self.update = None
