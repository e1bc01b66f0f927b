"""A task of the model."""

from __future__ import annotations

import random
from collections import defaultdict, deque
from dataclasses import replace
from typing import Protocol

from heron.checkpoints.manifest import CheckpointManifest, TaskSnapshot
from heron.instance.input.channel_alignment import ChannelAlignment, Verdict
from heron.instance.input.marker_counter import MarkerCounter
from heron.planner.physical_plan import CheckpointPlan, PhysicalPlan, PlanIndex, UpdatePhase
from heron.tmanager.leader.checkpoint_progress import CheckpointEvent, CheckpointReport
from heron.tmanager.leader.task_table import TaskEvent, TaskReport
from parts.checkpoint_model.messages import KEYS, NUMBERS, Key, Message, Saved, Segment, Sink, group_of

__all__ = ["ModelTask", "TaskSurroundings"]


class TaskSurroundings(Protocol):
    """What a task uses of the model: the store, the files of sinks, and its link."""

    random: random.Random
    segments: dict[bytes, Segment]
    store: dict[tuple[int, int], Saved]
    manifests: dict[int, CheckpointManifest]
    sinks: defaultdict[int, Sink]
    out: defaultdict[int, deque[Message]]

    def consumers(self, component: str) -> list[str]:
        """The components downstream."""
        ...

    def key_of(self, segment: Segment) -> bytes:
        """The bytes that stand for a segment in the alignment."""
        ...


class ModelTask:
    """One incarnation of a task: its plan, state, alignment, and links with its stream manager."""

    def __init__(
        self, model: TaskSurroundings, task_id: int, component: str, container_id: int, incarnation: int
    ) -> None:
        self.model, self.task_id, self.component = model, task_id, component
        self.container_id, self.incarnation = container_id, incarnation
        self.inbox: deque[PhysicalPlan | Segment] = deque()
        self.connected = False
        self.index: PlanIndex | None = None
        self.orders = CheckpointPlan()
        self.values: dict[Key, int] = {}
        self.ended = False
        self.saved = self.committed = 0
        self.saving: tuple[int, Saved] | None = None
        self.alignment = ChannelAlignment(1 << 30)
        self.markers = MarkerCounter(frozenset())
        self.report: TaskReport | None = None

    @property
    def is_spout(self) -> bool:
        """Whether nothing is upstream."""
        return self.component.startswith("spout")

    @property
    def is_sink(self) -> bool:
        """Whether the output of this task is the output of the topology."""
        return self.component.startswith("sink")

    def has_work(self) -> bool:
        """Whether `step` does something."""
        if self.index is None:
            return bool(self.inbox)
        return bool(self.inbox) or self.alignment.waits() or self.can_emit()

    def can_emit(self) -> bool:
        """A spout emits until it has ended; it rests while it is prepared."""
        return self.is_spout and self.index is not None and not self.ended and not self.is_prepared(self.index)

    def is_prepared(self, index: PlanIndex) -> bool:
        """`Task.is_prepared`."""
        update = index.plan.update
        return update is not None and update.phase is UpdatePhase.PREPARE and self.task_id in update.added

    def step(self) -> None:
        """`BoltRunner.work` or `SpoutRunner.work`, and then the commands (`ComponentRunner.run`)."""
        if self.index is None:
            item = self.inbox.popleft()
            assert isinstance(item, PhysicalPlan), "a stream manager sends the plan first"
            self.start(item)
            return
        if (key := self.alignment.take_ready()) is not None:
            self.align(self.model.segments[key])
        elif self.inbox and isinstance(self.inbox[0], Segment):
            segment = self.inbox.popleft()
            assert isinstance(segment, Segment)
            self.align(segment)
        elif self.can_emit() and not self.inbox:
            self.emit_next()
        if not self.is_spout and not self.ended and self.markers.complete():
            self.end()
        while self.inbox and isinstance(plan := self.inbox[0], PhysicalPlan):
            self.inbox.popleft()
            self.take_plan(plan)

    def start(self, plan: PhysicalPlan) -> None:
        """`ComponentRunner._start` with `TaskCheckpoints.restore` and `settle`, after `_restart_alignment`."""
        index = self.index = PlanIndex(plan, self.task_id)
        self.orders = self.orders_of(index)
        self.saved = self.orders.number
        self.values, self.ended, self.saving = {}, False, None
        self.markers = MarkerCounter(index.upstream_tasks(self.component))
        self.alignment.restart(self.upstream(index), self.orders.number)
        source = self.orders.complete
        if source:
            self.load(index, self.model.manifests[source])
        if self.is_sink:
            self.model.sinks[self.task_id].pre_restore(source)
        self.committed = self.orders.complete
        self.tell(CheckpointEvent.COMMITTED, self.orders.complete)
        if self.ended:
            self.end()
        else:
            self.announce(TaskEvent.INITIALISED)

    def orders_of(self, index: PlanIndex) -> CheckpointPlan:
        """The orders of a plan for this component."""
        orders = index.plan.checkpoints_of(self.component)
        assert orders is not None
        return orders

    def load(self, index: PlanIndex, manifest: CheckpointManifest) -> None:
        """`TaskCheckpoints._load_groups`, and whether the task had ended."""
        owners = index.key_owners(self.component)
        for snapshot in manifest.tasks_of(self.component):
            saved = self.model.store[manifest.number, snapshot.task_id]
            for key, value in saved.values.items():
                if owners[group_of(key)] == self.task_id:
                    self.values[key] = value
            if snapshot.task_id == self.task_id:
                self.ended = snapshot.ended

    def take_plan(self, plan: PhysicalPlan) -> None:
        """`ComponentRunner._take_plan`, `BoltRunner.apply_routes` and both `_follow_checkpoints`."""
        assert self.index is not None
        if plan.precedes(self.index.plan):
            return
        orders = self.orders_of(PlanIndex(plan))
        if orders.restores > self.orders.restores:
            self.start(plan)
            return
        before, self.index = self.index.plan, PlanIndex(plan, self.task_id)
        if (plan.tasks, plan.update, plan.key_owners) != (before.tasks, before.update, before.key_owners):
            self.markers.set_upstream(self.index.upstream_tasks(self.component))
            self.alignment.set_upstream(self.upstream(self.index))
        if self.ended:
            self.mark("end")
        self.orders = orders
        if self.orders.complete > self.committed:
            if self.is_sink:
                self.model.sinks[self.task_id].post_save(self.orders.complete)
            self.committed = self.orders.complete
            self.tell(CheckpointEvent.COMMITTED, self.committed)
        if not self.is_spout:
            self.alignment.open()
            self.save_if_aligned()
        elif self.orders.number > self.saved and not self.is_prepared(self.index):
            self.save(self.orders.number)

    def upstream(self, index: PlanIndex) -> frozenset[int]:
        """The tasks whose markers count: `BoltRunner._restart_alignment`."""
        return frozenset(index.former_tasks(index.upstream_tasks(self.component)))

    def align(self, segment: Segment) -> None:
        """`BoltRunner._process_frame` and `BoltRunner._align`."""
        assert self.index is not None
        key = self.model.key_of(segment)
        verdict = self.alignment.verdict(segment.source, segment.version, self.orders.since, self.index.plan.version)
        if verdict is Verdict.PARK:
            self.alignment.park(key)
        elif verdict is Verdict.PROCESS and segment.kind == "checkpoint":
            self.alignment.mark(segment.source, segment.number, 0.0)
            self.save_if_aligned()
        elif verdict is Verdict.PROCESS and segment.kind == "end":
            self.markers.end(segment.source)
        elif verdict is Verdict.PROCESS:
            self.process(segment)

    def process(self, row: Segment) -> None:
        """Counts the numbers of the key; a sink writes the line."""
        self.values[row.key] = count = self.values.get(row.key, 0) + 1
        if self.is_sink:
            self.model.sinks[self.task_id].open.append(replace(row, count=count if count == row.count else -1))
        else:
            self.emit(row.key, row.number, count)

    def emit_next(self) -> None:
        """Emits the next number of one key of this task, or ends."""
        assert self.index is not None
        owners = self.index.key_owners(self.component)
        mine = [(self.component, k) for k in range(KEYS) if owners[group_of((self.component, k))] == self.task_id]
        open_keys = [key for key in mine if self.values.get(key, 0) < NUMBERS]
        if not open_keys:
            self.end()
            return
        key = self.model.random.choice(open_keys)
        number = self.values.get(key, 0)
        self.values[key] = number + 1
        self.emit(key, number, number + 1)

    def emit(self, key: Key, number: int, count: int) -> None:
        """Sends a row to the owner of its key in each component downstream."""
        assert self.index is not None
        for name in self.model.consumers(self.component):
            owner = self.index.key_owners(name)[group_of(key)]
            self.send(Segment(self.task_id, owner, self.index.plan.version, "row", number, key, count))

    def end(self) -> None:
        """`ComponentRunner.end`."""
        self.ended = True
        self.mark("end")
        self.announce(TaskEvent.ENDED)

    def mark(self, kind: str, number: int = 0) -> None:
        """`ComponentRunner._mark_checkpoint`, or END for all members downstream."""
        assert self.index is not None
        tasks = self.index.downstream_tasks(self.component)
        for each in self.index.former_tasks(tasks) if kind == "checkpoint" else tasks:
            self.send(Segment(self.task_id, each, self.index.plan.version, kind, number))

    def save_if_aligned(self) -> None:
        """`BoltRunner._save_if_aligned`."""
        if number := self.alignment.aligned():
            self.alignment.finish(number, 0.0)
            self.save(number)

    def save(self, number: int) -> None:
        """`TaskCheckpoints.save`, and the marker."""
        self.saved = number
        if self.saving is not None:
            self.tell(CheckpointEvent.FAILED, number, error="busy")
        else:
            if self.is_sink:
                self.model.sinks[self.task_id].pre_save(number)
            self.saving = number, Saved(self.component, self.ended, dict(self.values))
        self.mark("checkpoint", number)

    def stored(self, *, fails: bool) -> None:
        """`TaskCheckpoints.advance`: the store has the state, or has refused it."""
        assert self.saving is not None
        (number, saved), self.saving = self.saving, None
        if fails:
            self.tell(CheckpointEvent.FAILED, number, error="the store failed")
            return
        self.model.store[number, self.task_id] = saved
        self.tell(CheckpointEvent.SAVED, number, TaskSnapshot(self.task_id, self.component, ended=saved.ended))

    def announce(self, event: TaskEvent) -> None:
        """`Task.report`."""
        self.report = TaskReport(self.task_id, self.incarnation, event, restores=self.orders.restores)
        self.send(self.report)

    def tell(self, event: CheckpointEvent, number: int, snapshot: TaskSnapshot | None = None, error: str = "") -> None:
        """`TaskCheckpoints._report`."""
        restores = self.orders.restores
        self.send(CheckpointReport(self.task_id, self.incarnation, restores, number, event, snapshot, error))

    def send(self, message: Message) -> None:
        """To its stream manager; without one the message waits."""
        self.model.out[self.task_id].append(message)

    def session_opened(self) -> None:
        """`ComponentRunner.handle`: the markers and the report are repeated to another stream manager."""
        if self.index is not None and self.ended:
            self.mark("end")
        if self.report is not None:
            self.send(self.report)
