"""A bolt's turn: everything that waits in its inbox, a tick when it is due, and `finish`."""

from __future__ import annotations

import math
from itertools import repeat

from heron.api.api_constants import TOPOLOGY_TICK_TUPLE_FREQ_SECS
from heron.api.bolt import Bolt
from heron.api.tuple import Tuple, TupleHelper
from heron.errors import SerializationError, TopologyFailedError
from heron.instance.batch_codec import decode_columns
from heron.instance.emitter import BoltEmitter
from heron.instance.hook_calls import BoltHookCalls
from heron.instance.marker_aligner import EndAligner
from heron.instance.threadsafe import QueuedTarget
from heron.instance.tuple_source import TupleSources
from heron.ipc.frame import SegmentKind
from heron.planner.physical_plan import TaskPlan
from heron_simulator.ack_ledger import Edge
from heron_simulator.outbox import Delivery
from heron_simulator.simulated_task import SimulatedTask, World
from heron_simulator.tracked_emitter import TrackedBoltEmitter

__all__ = ["SimulatedBolt"]


class SimulatedBolt(SimulatedTask):
    """Calls `process` for each tuple in the order of arrival."""

    def __init__(self, world: World, plan: TaskPlan) -> None:
        super().__init__(world, plan)
        ledger = world.ledger
        self._emitter = (
            TrackedBoltEmitter(self.origin(), self.outbox, ledger)
            if ledger
            else BoltEmitter(self.origin(), self.outbox)
        )
        self._component = Bolt()
        self._sources = TupleSources(world.index)
        self._aligner = EndAligner(world.index.upstream_tasks(plan.component))
        tick_s = self.config.get(TOPOLOGY_TICK_TUPLE_FREQ_SECS)
        self._tick_s = float(tick_s) if isinstance(tick_s, int | float) else math.inf
        self._next_tick_s = world.clock.monotonic_s() + self._tick_s

    @property
    def component(self) -> Bolt:
        """`SimulatedTask.component`."""
        return self._component

    @property
    def emitter(self) -> BoltEmitter:
        """`SimulatedTask.emitter`."""
        return self._emitter

    def construct(self, component_class: type, target: QueuedTarget) -> None:
        """`SimulatedTask.construct`."""
        self._component = component_class(delegate=self._emitter)
        target.emit, target.ack, target.fail = self._component.emit, self._component.ack, self._component.fail

    def due_s(self) -> float:
        """`SimulatedTask.due_s`."""
        return math.inf if self.ended else self._next_tick_s

    def work(self) -> bool:
        """`SimulatedTask.work`."""
        inbox = self.world.inboxes[self.plan.task_id]
        worked = bool(inbox)
        while inbox:
            self._take(inbox.popleft())
        worked = self._tick_if_due() or worked
        if not self.ended and self._aligner.complete():
            self._finish()
            worked = True
        self.emitter.flush()
        self._settle()
        return worked

    def _take(self, delivery: Delivery) -> None:
        head = delivery.head
        if head.kind == SegmentKind.MARKER:
            self._aligner.end(head.source_task)
            return
        try:
            serializer = self.world.serializers.reading(head.encoding, head.source_task)
            payload = memoryview(delivery.data)[head.payload_start : head.end]
            columns = decode_columns(payload, head.rows, serializer)
        except SerializationError as error:
            self.metrics.failed += head.rows
            self.errors.report(f"reading {head.rows} tuples of task {head.source_task}", error, "they are lost")
            self._fail(delivery.edge)
            return
        source = self._sources.of(head.source_task, head.stream)
        rows = zip(*columns, strict=True) if columns else repeat((), head.rows)
        for tup, values in zip(source.pool.take(head.rows), rows, strict=False):
            tup.values, tup.id = values, delivery.edge
            self._execute(tup)
        self._settle()
        source.pool.recycle(head.rows, delivery.edge)  # a tuple that the bolt holds is acked later
        self.metrics.executed[source.key] = self.metrics.executed.get(source.key, 0) + head.rows

    def _execute(self, tup: Tuple) -> None:
        emitter = self._emitter
        if emitter.hooks and emitter.hook_calls is None:
            emitter.hook_calls = BoltHookCalls(emitter.hooks, self.plan.task_id, self.world.clock.monotonic_s)
        try:
            if emitter.hook_calls is None:
                self._component.process(tup)
            else:
                emitter.hook_calls.execute(self._component.process, tup)
        except Exception as error:
            self.metrics.failed += 1
            self._fail(tup.id)
            self.user_failed("process", error, "this tuple is failed, the task goes on", tup)

    def _tick_if_due(self) -> bool:
        now_s = self.world.clock.monotonic_s()
        if self.ended or now_s < self._next_tick_s:
            return False
        try:
            self._component.process_tick(TupleHelper.make_tick_tuple())
        except Exception as error:
            self.user_failed("process_tick", error, "the task goes on")
        self._next_tick_s = self.world.clock.monotonic_s() + self._tick_s
        return True

    def _finish(self) -> None:
        try:
            self._component.finish()
        except Exception as error:
            line = self.errors.report("finish", error, "correct it and run the topology again")
            raise TopologyFailedError(line) from error
        self._settle()
        self.end()

    def _fail(self, edge: object) -> None:
        if isinstance(edge, Edge) and self.world.ledger is not None:
            self.world.ledger.fail(edge)

    def _settle(self) -> None:
        acked, failed = self._emitter.acked, self._emitter.failed
        self.metrics.acked += len(acked)
        self.metrics.failed += len(failed)
        acked.clear()
        failed.clear()
