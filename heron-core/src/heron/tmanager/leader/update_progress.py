"""The update of a running topology, phase by phase: what may begin, and what each phase waits for. Pure.

Each update begins with the phase PREPARE. Two protocols end it:

- by switch, without checkpoints: the phase SWITCH follows, until all removed tasks have left
  (`docs/decisions/020-live-plans.md`);
- by restore, with checkpoints: a checkpoint is taken in PREPARE, and the next plan restores it with the new tasks.
  There is no phase SWITCH (`docs/decisions/021-checkpoints-in-the-plan.md`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from heron.api.definition import ComponentKind, TopologyDefinition
from heron.clock import Clock
from heron.errors import HeronError, known
from heron.ipc.documents.status import UpdateStatus
from heron.planner.key_owners import KeyOwners
from heron.planner.packing_plan import PackingPlan
from heron.planner.physical_plan import PhysicalPlan, PlanIndex, PlanUpdate, UpdatePhase, at_parallelism_of
from heron.planner.plan_update import has_key_groups
from heron.planner.verify import verify
from heron.tmanager.leader.checkpoint_progress import CheckpointProgress
from heron.tmanager.leader.membership import PlanMaker, Registry
from heron.tmanager.leader.task_table import TaskState, TaskTable

__all__ = ["MOST_DEATHS", "NO_OWNERS", "OwnersByComponent", "UpdateProgress"]

OwnersByComponent = Mapping[str, KeyOwners]
"""The owners of key groups that a command asks for, by component."""

NO_OWNERS: Final[OwnersByComponent] = MappingProxyType({})

MOST_DEATHS: Final = 2
"""A task with new code that has died more often does not start: one death may have a cause from outside."""

_BROKEN = (TaskState.FAILED, TaskState.DOWN)
_GONE = (TaskState.LEFT, TaskState.ENDED, *_BROKEN)


class UpdateProgress:
    """The update of one leader: `begin`, then `step` after each event. The plan maker holds its value."""

    def __init__(  # the parts of the leader that an update waits for
        self,
        plans: PlanMaker,
        tasks: TaskTable,
        registry: Registry,
        limit_s: float,
        clock: Clock,
        checkpoints: CheckpointProgress | None = None,
    ) -> None:
        """`limit_s` is how long the phase PREPARE may take. With `checkpoints`, updates are updates by restore."""
        self._checkpoints = checkpoints
        self.checkpoint = 0
        """The checkpoint that the update under way waits for; 0 for none. An update that finds 0 takes another one."""
        self._failures = 0
        self._plans = plans
        self._tasks = tasks
        self._registry = registry
        self.limit_s = limit_s
        self._clock = clock
        self._deadline_s = clock.monotonic_s() + limit_s if plans.update else math.inf
        self._last: UpdateStatus | None = None

    def begin(
        self,
        plan: PhysicalPlan,
        definition: TopologyDefinition,
        target: PackingPlan,
        base: str,
        owners: OwnersByComponent,
    ) -> bool:
        """Begins the update to `target`, a change of the packing plan with the id `base`; False if it has begun before.

        `owners` are those of the key groups of components whose tasks stay.

        Raises:
            HeronError: when another update is under way, or the packing plan is another one by now, or the topology
                cannot have this plan.
        """
        present, index = self._plans.update, PlanIndex(plan)
        if self._is_repeated(index, target, owners):
            return False  # the answer to the first request was lost
        if present is not None:
            msg = (
                f"update {present.number} of {definition.name!r} is in phase {present.phase.value} and waits for "
                f"{self._waits_for()}; try again when it is complete, or withdraw it"
            )
            raise HeronError(msg)
        packing = self._plans.packing
        if base != packing.id:
            msg = f"the packing plan of {definition.name!r} is {packing.id!r} now, not {base!r}; try again"
            raise HeronError(msg)
        verify(at_parallelism_of(target, definition))
        _check_places(packing, target)
        self._check_changes(index, definition, target)
        self._check_owners(index, target, owners)
        self._plans.prepare(index, target, owners)
        self._deadline_s = self._clock.monotonic_s() + self.limit_s
        return True

    def _is_repeated(self, index: PlanIndex, target: PackingPlan, owners: OwnersByComponent) -> bool:
        present, last = self._plans.update, self._last
        if present is not None:
            wanted = {name: present.key_owners.get(name) for name in owners}
            return present.target == target.id and wanted == owners
        tasks = _tasks(self._plans.packing)
        if owners and _tasks(target) == tasks:
            return all(name in tasks and index.key_owners(name) == each.table() for name, each in owners.items())
        return last is not None and (last.phase, last.target) == ("complete", target.id)

    def _check_owners(self, index: PlanIndex, target: PackingPlan, owners: OwnersByComponent) -> None:
        """Checks that components have key groups, and that each of their tasks gets some and can take them.

        Raises:
            HeronError: when that is not so: a task does not run, or has state that does not move with a key group.
        """
        tasks = _tasks(target)
        if undivided := self._undivided(owners):
            raise HeronError(undivided)
        for name, each in owners.items():
            table = each.table()
            keyed = name in tasks and has_key_groups(index.plan.topology.component(name))
            groups = len(index.key_owners(name)) if keyed else 0
            if not keyed or set(table) != tasks[name] or len(table) != groups:
                msg = (
                    f"component {name!r}: the owners of key groups are for {len(table)} groups and tasks "
                    f"{sorted(set(table))}; the topology has {groups} groups and tasks {sorted(tasks.get(name, ()))}"
                )
                raise HeronError(msg)
            self._check_not_ended(name, tasks[name])
            if absent := [task for task in sorted(tasks[name]) if self._tasks.state(task) is not TaskState.RUNNING]:
                msg = f"task {absent[0]} of component {name!r} does not run, so it cannot take key groups; try again"
                raise HeronError(msg)

    def _check_changes(self, index: PlanIndex, definition: TopologyDefinition, target: PackingPlan) -> None:
        """Checks that the components whose tasks change can have others.

        Raises:
            HeronError: when one of them cannot.
        """
        before, after = _tasks(self._plans.packing), _tasks(target)
        if undivided := self._undivided(each for each in after if len(after[each]) != len(before[each])):
            raise HeronError(undivided)
        for name in after:
            if after[name] == before[name]:
                continue
            self._check_not_ended(name, index.members_of(name))
            removed = before[name] - after[name]
            stays = self._checkpoints is None and self._plans.code is None
            if removed and stays and definition.component(name).kind is ComponentKind.SPOUT:
                msg = (
                    f"component {name!r} is a spout of {len(before[name])} tasks; its parallelism can only grow, and "
                    f"task {min(removed)} cannot leave: no other task can continue at the position of a removed one"
                )
                raise HeronError(msg)

    def _check_not_ended(self, component: str, tasks: Iterable[int]) -> None:
        ended = [task for task in tasks if self._tasks.state(task) is TaskState.ENDED]
        if ended:
            msg = f"component {component!r} has ended at task {min(ended)}; its tasks cannot change any more"
            raise HeronError(msg)

    def withdraw(self, reason: str) -> None:
        """Withdraws the update.

        Raises:
            HeronError: when there is none, or its data takes the new routes already.
        """
        update = self._plans.update
        if update is None:
            msg = "no update is under way"
            raise HeronError(msg)
        if update.phase is not UpdatePhase.PREPARE:
            msg = f"update {update.number} cannot be withdrawn in phase {update.phase.value}; it will be complete soon"
            raise HeronError(msg)
        if self._checkpoints is not None and self.checkpoint and self._plans.code is not None:
            self._checkpoints.abandon()  # canaries save it too, and the former code returns to the one before
        self._note("withdrawn", reason)
        self._plans.withdraw()

    def step(self) -> bool:
        """Goes on to the next phase if the present one is over; returns whether the plan changes."""
        update = self._plans.update
        if update is None:
            return False
        return self._step_in_prepare(update) if update.phase is UpdatePhase.PREPARE else self._step_in_switch(update)

    def prepares(self, task_id: int) -> bool:
        """Whether no data is routed to this task yet: if it does not run, the update is withdrawn, and nothing else."""
        update = self._plans.update
        return update is not None and update.phase is UpdatePhase.PREPARE and task_id in update.added

    def status(self) -> UpdateStatus | None:
        """The update under way, else the last one of this leader."""
        update = self._plans.update
        if update is None:
            return self._last
        return UpdateStatus(
            update.number, update.phase.value, update.target, update.added, update.removed, self._waits_for()
        )

    def holds_checkpoints(self) -> bool:
        """Whether no other checkpoint may be taken: that of the update is complete, and not yet restored.

        A removed task could prepare output for it when the others have restored. The task that writes what removed
        tasks have left would write it, and it comes again behind the restored checkpoint.
        """
        return 0 < self.checkpoint <= self._plans.checkpoint_plan().complete

    def _step_in_prepare(self, update: PlanUpdate) -> bool:
        most_deaths = math.inf if self._plans.code is None else MOST_DEATHS
        broken = [task for task in update.added if self._tasks.is_broken(task, most_deaths)]
        if broken:
            component, container_id = self._tasks.place(broken[0])
            error = self._tasks.last_error(broken[0])
            self.withdraw(f"task {broken[0]} of {component!r} in container {container_id} does not run: {error}")
        elif ended := self._ended():
            self.withdraw(f"component {self._tasks.place(ended[0])[0]!r} has ended at task {ended[0]}")
        elif not self._missing() and not self._starting():
            if self._checkpoints is not None:
                return self._end_by_restore(update, self._checkpoints)
            self._plans.switch()
        elif self._clock.monotonic_s() >= self._deadline_s:
            errors = [error for task in self._starting() if (error := self._tasks.last_error(task))]
            why = f": {errors[0]}" if errors else ""
            self.withdraw(f"{self._waits_for()} is missing after {self.limit_s:g} s (heron.update.prepare.s){why}")
        else:
            return False
        return True

    def _end_by_restore(self, update: PlanUpdate, checkpoints: CheckpointProgress) -> bool:
        """An update by restore: takes a checkpoint, or the one under way, and restores it when all have committed it.

        The return of new code restores the checkpoint from before that code, and takes none. Returns whether the plan
        changes: by the restore, or because the update is withdrawn.
        """
        returns = self._plans.code is not None and self._plans.code.returns != ""
        if not (self.checkpoint or returns):
            self.checkpoint, self._failures = checkpoints.join(), checkpoints.failures[0]
        if returns or checkpoints.is_committed(self.checkpoint):
            added = Counter(self._tasks.place(each)[0] for each in update.added)
            removed = Counter(self._tasks.place(each)[0] for each in update.removed)
            changed = {*added, *removed, *update.key_owners}
            moved = {each for each in changed if 0 < added[each] == removed[each]}  # state goes with the index
            if undivided := self._undivided(changed - moved):
                self.withdraw(undivided)
                return True
            self._note("complete", "")
            self._plans.complete()
            checkpoints.restore(checkpoints.run.regions_of(changed))
            return True
        failures, _, error = checkpoints.failures
        if failures > self._failures:
            self.withdraw(f"its checkpoint failed: {error}")
        elif self._clock.monotonic_s() >= self._deadline_s:
            wanted = "committed" if self.holds_checkpoints() else "complete"
            self.withdraw(f"its checkpoint is not {wanted} after {self.limit_s:g} s (heron.update.prepare.s)")
        return self._plans.update is None

    def _step_in_switch(self, update: PlanUpdate) -> bool:
        """An update by switch: it is complete when all removed tasks have left."""
        if not [task for task in update.removed if self._tasks.state(task) not in _GONE]:
            self._note("complete", "")
            self._plans.complete()
            return True
        absent = tuple(each.task_id for each in self._tasks.statuses() if self._tasks.state(each.task_id) in _BROKEN)
        if absent == update.absent:
            return False
        self._plans.set_absent(absent)
        return True

    def _undivided(self, components: Iterable[str]) -> str:
        """Why one of these components cannot have other tasks: its state belongs to one task. "" if all can."""
        undivided = self._checkpoints.undivided() if self._checkpoints is not None else frozenset[str]()
        for name in components:
            if name in undivided:
                return (
                    f"component {name!r} keeps state in init_state, which belongs to one task; its parallelism cannot "
                    "change, and its key groups cannot move; keep state that moves in keyed_state"
                )
        return ""

    def _ended(self) -> list[int]:
        """The ended tasks of components whose tasks change.

        Consumers of a component that gets more tasks may have ended too. With checkpoints, an ended task is restored
        as ended: it would not continue what it takes over from a removed task.
        """
        update = self._plans.update
        added = update.added if update is not None else ()
        removed = update.removed if update is not None and self._checkpoints is not None else ()
        changed = {self._tasks.place(task)[0] for task in (*added, *removed)}
        if update is not None and not (update.added or update.removed):
            changed |= update.key_owners.keys()
        return [
            each.task_id
            for each in self._tasks.statuses()
            if each.component in changed
            and each.task_id not in added
            and self._tasks.state(each.task_id) is TaskState.ENDED
        ]

    def _waits_for(self) -> str:
        update = self._plans.update
        if update is None:
            return ""
        if update.phase is UpdatePhase.PREPARE:
            if missing := _listed("container", self._missing()) or _listed("task", self._starting()):
                return missing
            if self.holds_checkpoints():
                return "the commit of its checkpoint"
            return self._checkpoints.status().waits_for if self._checkpoints is not None else ""
        return _listed("task", [task for task in update.removed if self._tasks.state(task) not in _GONE])

    def _missing(self) -> list[int]:
        return sorted(self._plans.containers() - self._registry.locations().keys())

    def _starting(self) -> list[int]:
        update = self._plans.update
        added = update.added if update is not None else ()
        return [task for task in added if self._tasks.state(task) not in (TaskState.RUNNING, TaskState.ENDED)]

    def _note(self, outcome: str, reason: str) -> None:
        self.checkpoint = 0
        update = self._plans.update
        assert update is not None  # noqa: S101  # only for an update under way
        self._last = UpdateStatus(update.number, outcome, update.target, update.added, update.removed, reason)


def _tasks(packing: PackingPlan) -> dict[str, set[int]]:
    """The task ids of each component."""
    found: dict[str, set[int]] = {}
    for _, each in packing.instances():
        found.setdefault(each.component, set()).add(each.task_id)
    return found


def _listed(what: str, numbers: list[int]) -> str:
    return f"{what}{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}" if numbers else ""


def _check_places(packing: PackingPlan, target: PackingPlan) -> None:
    """Checks that components are known, that tasks which stay do not move, and that new tasks have new ids.

    Raises:
        HeronError: when the plan breaks one of these rules.
    """
    components = packing.parallelism()
    before = {each.task_id: (each.component, container_id) for container_id, each in packing.instances()}
    last = packing.next_task_id() - 1
    for container_id, each in target.instances():
        if each.component not in components:
            msg = f"packing plan {target.id!r}: component {each.component!r} is unknown; known: {known(components)}"
            raise HeronError(msg)
        if each.task_id in before and before[each.task_id] != (each.component, container_id):
            component, former = before[each.task_id]
            msg = (
                f"packing plan {target.id!r}: task {each.task_id} of {component!r} is in container {former}, it cannot "
                f"become {each.component!r} in container {container_id}"
            )
            raise HeronError(msg)
        if each.task_id not in before and each.task_id <= last:
            msg = f"packing plan {target.id!r}: task {each.task_id} is new, but ids up to {last} have been used"
            raise HeronError(msg)
