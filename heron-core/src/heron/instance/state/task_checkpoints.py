"""The checkpoints of one task: what it has saved, committed and restored, and the state that it saves.

Belongs to the task thread. The runner calls it when a plan or a marker orders something.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from heron.api.bolt import Bolt
from heron.api.spout import Spout
from heron.api.state import HashMapState, ITwoPhaseStatefulComponent, State, StatefulComponent
from heron.author_text import named_error
from heron.checkpoints.archive import CheckpointArchive
from heron.checkpoints.compatibility import check_compatible
from heron.checkpoints.manifest import CheckpointId, CheckpointManifest, Place, TaskSnapshot, encode
from heron.errors import SerializationError
from heron.instance.state.checkpoint_saver import CheckpointSaver
from heron.instance.state.keyed_state import KeyedStateStore
from heron.instance.state.state_payload import decode_operator_state, encode_operator_state
from heron.ipc import control_pb2 as pb
from heron.ipc.envelope import Envelope
from heron.ipc.machine import REAL_MACHINE, Machine
from heron.kernel.role_spec import InstanceSpec
from heron.planner.physical_plan import CheckpointPlan, PlanIndex

if TYPE_CHECKING:  # most topologies have no dead letters
    from heron.instance.state.held_letters import HeldLetters

__all__ = ["TaskCheckpoints"]

_log = logging.getLogger(__name__)


class TaskCheckpoints:
    """Saves and restores the state of a task, and reports it to the topology manager."""

    def __init__(
        self,
        spec: InstanceSpec,
        archive: CheckpointArchive,
        keyed: KeyedStateStore,
        send: Callable[[Envelope], None],
        nudge: Callable[[], None],
        machine: Machine = REAL_MACHINE,
    ) -> None:
        """`send` sends a control message; `nudge` wakes the task thread, and is called on another thread."""
        self._spec = spec
        self._archive = archive
        self._keyed = keyed
        self._send = send
        self._saver = CheckpointSaver(archive, spec.topology_id, spec.task_id, nudge, machine)
        self._operator: State = HashMapState()
        self.letters: HeldLetters | None = None
        """The dead letters of the task, if it keeps any; part of its state."""
        self._plan = CheckpointPlan()
        self._saved = 0
        self._committed = 0
        self._ended_at = 0
        self.ended = False
        """Whether the task had ended when the restored checkpoint was taken."""

    @property
    def restores(self) -> int:
        """How many restores of the topology the task has carried out."""
        return self._plan.restores

    @property
    def plan(self) -> CheckpointPlan:
        """What the newest plan orders."""
        return self._plan

    def is_restore(self, plan: CheckpointPlan) -> bool:
        """Whether a plan orders a restore that the task has not carried out."""
        return plan.restores > self._plan.restores

    def set_plan(self, plan: CheckpointPlan) -> None:
        """Takes the orders of a plan, which is no restore."""
        self._plan = plan

    def keep(self, plan: CheckpointPlan) -> None:
        """Takes the orders of a plan that restores, for a component that keeps its present state.

        The next checkpoint saves all of it: the stored payloads may be of tasks that have died since.
        """
        self._plan = plan
        self._saved = plan.number
        self._saver.restart({})
        self._keyed.mark_all_changed()
        self.ended = 0 < self._ended_at <= plan.complete

    def save_is_due(self) -> bool:
        """Whether a checkpoint is ordered that a spout has not saved."""
        return self._plan.number > self._saved

    def restore(self, index: PlanIndex, component: Spout | Bolt) -> None:
        """Loads the newest complete state and gives it to the component.

        Raises:
            CheckpointError: when it cannot be loaded, or does not fit the component.
        """
        plan = index.plan.checkpoints_of(self._spec.component) or CheckpointPlan()
        self._plan = plan
        self._saved = plan.number
        own, places = None, {}
        self._keyed.clear()
        self._keyed.serve(component)
        if source := self._source():
            manifest = self._archive.manifest(source)
            if source.run != self._spec.topology_id:  # in the same run an update has made sure of it
                check_compatible(manifest, index.plan.topology)
            own = _own_snapshot(manifest, index, self._spec)
            places = self._load_groups(manifest, index)
        self._saver.restart(places)
        self.ended = own is not None and own.ended
        self._ended_at = plan.complete if self.ended else 0
        self._operator = HashMapState()
        if self.letters is not None and index.former_tasks([self._spec.task_id]):
            # A task that an update prepares is restored again: until then the former task writes the letters.
            payload = self._archive.load(own.letters) if own is not None and own.letters is not None else b""
            in_same_run = source is not None and source.run == self._spec.topology_id
            former = own.task_id if own is not None and in_same_run else self._spec.task_id
            self.letters.restore(payload, former)
        if own is not None and own.operator is not None:
            self._operator = decode_operator_state(self._archive.load(own.operator), str(own.operator.object))
        if isinstance(component, StatefulComponent):
            if own is not None and own.version != component.state_version:
                self._operator = component.migrate(own.version, self._operator)
            component.init_state(self._operator)

    def pre_restore(self, component: Spout | Bolt) -> None:
        """After `initialize`: the component commits what belongs to the restored checkpoint, and discards the rest."""
        source = self._source()
        if isinstance(component, ITwoPhaseStatefulComponent):
            component.pre_restore(str(source.number) if source else "")
        if self.letters is not None and source is not None:
            self.letters.complete(source.number)
        self._committed = self._plan.complete

    def report_committed(self) -> None:
        """Reports the newest checkpoint that is committed."""
        self._report(pb.CHECKPOINT_PHASE_COMMITTED, self._committed)

    def save(self, number: int, component: Spout | Bolt, *, ended: bool, align_s: float = 0.0) -> None:
        """Begins to save the state of this instant; `advance` goes on with it.

        A failure fails this checkpoint, and the task continues.
        """
        self._saved = number
        if ended and not self._ended_at:
            self._ended_at = number
        if self._saver.busy:
            self.give_up(number, "the state of the checkpoint before is still being stored")
            return
        version = 0
        try:
            if isinstance(component, StatefulComponent):
                version = component.state_version
                component.pre_save(str(number))
            operator = encode_operator_state(self._operator, f"task {self._spec.task_id} of {self._spec.component!r}")
            self._keyed.mark_changed(self._saver.sparse_groups())
            keyed = self._keyed.snapshot()
        except Exception as error:
            self.give_up(number, f"{named_error(error)}")
            return
        spec = self._spec
        snapshot = TaskSnapshot(
            spec.task_id,
            spec.component,
            ended=ended,
            version=version,
            align_s=align_s,
            component_index=spec.component_index,
        )
        letters = self.letters.save(number) if self.letters is not None else None
        self._saver.begin(number, snapshot, operator, keyed, letters)

    def advance(self) -> bool:
        """Encodes a slice of a checkpoint and reports one that is stored; returns whether more is to be encoded."""
        if not self._saver.busy:
            return False
        try:
            more = self._saver.advance()
        except SerializationError as error:
            self.give_up(self._saved, str(error))
            return False
        outcome = self._saver.outcome()
        if outcome is not None and outcome.snapshot is not None:
            self._report(pb.CHECKPOINT_PHASE_SAVED, outcome.number, outcome.snapshot)
        elif outcome is not None:
            self.give_up(outcome.number, outcome.error)
        return more

    def give_up(self, number: int, reason: str) -> None:
        """Reports that the task has not saved a checkpoint."""
        self._saved = max(self._saved, number)
        spec = self._spec
        where = f"topology {spec.topology!r}, component {spec.component!r}, task {spec.task_id}"
        error = f"{where}: checkpoint {number} failed: {reason}"
        _log.warning("%s", error)
        self._report(pb.CHECKPOINT_PHASE_FAILED, number, error=error)

    def commit(self, component: Spout | Bolt) -> None:
        """Commits the newest complete checkpoint, if the task has not committed it.

        Raises whatever `post_save` raises; the commit is not reported then.
        """
        number = self._plan.complete
        if number <= self._committed:
            return
        if isinstance(component, ITwoPhaseStatefulComponent):
            component.post_save(str(number))
        if self.letters is not None:
            self.letters.complete(number)
        self._committed = number
        self._report(pb.CHECKPOINT_PHASE_COMMITTED, number)

    def _source(self) -> CheckpointId | None:
        """The checkpoint that the task loads.

        A task that restarts has a plan in which checkpoints may be complete since the last restore. Their output must
        be committed, and older checkpoints may be disposed of.
        """
        plan = self._plan
        if plan.complete:
            return CheckpointId(self._spec.topology_id, plan.complete)
        return CheckpointId.parse(plan.source) if plan.source else None

    def _load_groups(self, manifest: CheckpointManifest, index: PlanIndex) -> dict[int, Place]:
        spec = self._spec
        owners = index.key_owners(spec.component)
        places: dict[int, Place] = {}
        for snapshot in manifest.tasks_of(spec.component):
            for group, place in snapshot.groups.items():
                if owners[group] == spec.task_id:
                    self._keyed.load(group, self._archive.load(place))
                    places[group] = place
        return places

    def _report(
        self, phase: pb.CheckpointPhase, number: int, snapshot: TaskSnapshot | None = None, error: str = ""
    ) -> None:
        report = pb.CheckpointReport(
            task_id=self._spec.task_id,
            incarnation=self._spec.incarnation,
            restores=self._plan.restores,
            number=number,
            phase=phase,
            snapshot=encode(snapshot) if snapshot is not None else b"",
            error=error,
        )
        self._send(Envelope(checkpoint_report=report))


def _own_snapshot(manifest: CheckpointManifest, index: PlanIndex, spec: InstanceSpec) -> TaskSnapshot | None:
    """The snapshot whose operator state this task goes on with; None if no task of the checkpoint was this one.

    In the same run tasks keep their ids; an instance that moves to another container keeps only its index. A later run
    may have other ids: then the order of the tasks counts, if the component has as many tasks as before.
    """
    former = sorted(manifest.tasks_of(spec.component), key=lambda each: each.component_index)
    tasks = index.tasks_of(spec.component)
    if manifest.run == spec.topology_id:
        same = [each for each in former if each.task_id == spec.task_id]
        moved = [each for each in former if each.task_id not in tasks and each.component_index == spec.component_index]
        return next(iter((*same, *moved)), None)
    if len(tasks) == len(former):
        return former[tasks.index(spec.task_id)]
    if former and all(each.ended for each in former):
        return TaskSnapshot(spec.task_id, spec.component, ended=True, version=former[0].version)
    return None
