"""The turn of a simulated bolt: all deliveries in its inbox, a tick if it is due, and `finish`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from heron.api.bolt import Bolt
from heron.api.plain_batch import PlainBatch
from heron.api.tuple import Tuple, TupleHelper
from heron.author_text import Described
from heron.errors import SerializationError, TopologyFailedError
from heron.instance.acks.tracked_batch import UNTRACKED
from heron.instance.input.batch_reader import BatchReader
from heron.instance.input.column_input import ColumnInput, ReceivedColumns
from heron.instance.input.marker_counter import MarkerCounter
from heron.instance.input.undecodable_rows import UndecodableRow, report_undecodable
from heron.instance.input.watermarks import TaskWatermark, WatermarkStep, watermark_sources
from heron.instance.output.emitter import BoltEmitter
from heron.instance.pacing import TickTimer
from heron.instance.replay.failure_cause import FailureCause, encode_cause
from heron.instance.replay.replay_policy import replays_somewhere
from heron.instance.user.queued_collector import QueuedTarget
from heron.instance.user.user_component import BoltHookCalls
from heron.ipc.frames.frame import Marker, SegmentKind, marker_value
from heron.ipc.frames.tracking import NO_CAUSE
from heron.planner.physical_plan import TaskPlan
from heron_simulator.ack_ledger import Edge
from heron_simulator.delivery import Delivery, TrackedBoltEmitter
from heron_simulator.simulated_task import SimulatedTask, SimulationEnvironment

if TYPE_CHECKING:
    from pyarrow import RecordBatch

__all__ = ["SimulatedBolt"]


class SimulatedBolt(SimulatedTask):
    """Calls `process` for each tuple in the order of arrival."""

    def __init__(self, environment: SimulationEnvironment, plan: TaskPlan) -> None:
        super().__init__(environment, plan)
        ledger = environment.ledger
        self._emitter = (
            TrackedBoltEmitter(self.origin(), self.outbox, ledger)
            if ledger
            else BoltEmitter(self.origin(), self.outbox)
        )
        self._component = Bolt()
        self._reader = BatchReader(environment.index, environment.serializers)
        self._markers = MarkerCounter(environment.index.upstream_tasks(plan.component))
        self._watermark = TaskWatermark(watermark_sources(environment.index, plan.component))
        self._column_input: ColumnInput | None = None
        self._emitter.column_acks = self
        self._tells_why = replays_somewhere(environment.index.plan.topology)
        if self._tells_why and isinstance(self._emitter, TrackedBoltEmitter):
            self._emitter.cause = encode_cause(FailureCause(plan.component, plan.task_id))
        self._ticks = TickTimer(self.config, environment.clock.monotonic_s)

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
        if component_class.receives_columns():  # type: ignore[attr-defined]  # a bolt's class
            self._column_input = ColumnInput(self.environment.serializers.for_columns())
        target.emit, target.ack, target.fail = self._component.emit, self._component.ack, self._component.fail

    def due_s(self) -> float:
        """`SimulatedTask.due_s`."""
        return math.inf if self.ended else self._ticks.next_s

    def work(self) -> bool:
        """`SimulatedTask.work`."""
        inbox = self.environment.inboxes[self.plan.task_id]
        worked = False
        while inbox:
            delivery = inbox.popleft()
            if delivery.head.kind == SegmentKind.MARKER:
                worked = self._take_marker(delivery) or worked
            else:
                self._take(delivery)
                worked = True
        worked = self._tick_if_due() or worked
        if not self.ended and self._markers.complete():
            self._queued.drain(self._queued_failed)
            self._finish()
            worked = True
        self.emitter.flush()
        self._settle()
        return worked

    def _take_marker(self, delivery: Delivery) -> bool:
        """Returns whether the marker had an effect: time must pass although spouts repeat their watermarks."""
        head, now_s = delivery.head, self.environment.clock.monotonic_s()
        if head.stream == Marker.END:
            self._markers.end(head.source_task)
            self._advance_watermark(self._watermark.end(head.source_task, now_s))
            return True
        time_us, idle = marker_value(delivery.data, head), head.stream == Marker.IDLE
        return self._advance_watermark(self._watermark.receive(head.source_task, time_us, idle=idle, now_s=now_s))

    def _advance_watermark(self, step: WatermarkStep | None) -> bool:
        """Calls `process_watermark` if the watermark has grown, and forwards it; returns whether there was a step."""
        if step is None or self.ended:
            return False
        if step.has_grown:
            self.metrics.watermark_us = step.time_us
            try:
                self._component.process_watermark(step.time_s)
            except (Exception, SystemExit) as error:
                self.user_failed("process_watermark", error, "the task continues")
            self._settle()
        if receivers := self.environment.index.receiving_tasks(self.plan.component):
            self.emitter.send_marker(step.marker, receivers, step.time_us)
        return True

    def _take(self, delivery: Delivery) -> None:
        head = delivery.head
        try:
            batch = self._reader.read(delivery.data, head)
            if self._column_input is None:
                batch.columns()
        except SerializationError as error:
            self.metrics.failed += head.rows
            self.errors.report(f"reading {self._reader.described(head)}", error, "these tuples are lost")
            self._fail(delivery.edge, "reading the batch", error)
            return
        if self._column_input is not None:
            self._process_columns(self._column_input.columns_of(batch), delivery.edge)
            return
        source = batch.source
        if delivery.edge is not None:
            delivery.edge.unacked = set(range(head.rows))
        self._fail_undecodable(batch.undecodable, delivery.edge)
        for tup, values in batch.decoded(zip(source.pool.take(head.rows), batch.values(), strict=False)):
            tup.values, tup.id = values, delivery.edge
            self._execute(tup)
        self._settle()
        source.pool.recycle(head.rows, delivery.edge)  # a tuple that the bolt keeps is acked later
        executed = head.rows - len(batch.undecodable)
        self.metrics.executed[source.key] = self.metrics.executed.get(source.key, 0) + executed

    def settle_columns(self, batch: RecordBatch, *, acked: bool) -> None:
        """`heron.instance.output.emit_contracts.ColumnAcks`; the ledger hears of it from the emitter."""
        self.metrics.acked += batch.num_rows if acked else 0
        self.metrics.failed += 0 if acked else batch.num_rows

    def settle_rows(self, batch: PlainBatch, places: Sequence[int], *, acked: bool) -> None:
        """`heron.instance.output.emit_contracts.ColumnAcks`: never called, as bolts get single tuples here."""

    def _process_columns(self, received: ReceivedColumns, edge: Edge | None) -> None:
        batch, emitter, key = received.batch, self._emitter, received.source.key
        self._fail_undecodable(received.undecodable, edge)
        if isinstance(emitter, TrackedBoltEmitter):
            emitter.received.add(batch, UNTRACKED if edge is None else edge)
        self._component.received_from = received.received_from
        try:
            if batch.num_rows:
                self._component.process_columns(batch)
        except (Exception, SystemExit) as error:
            self.settle_columns(batch, acked=False)
            self._fail(edge, "process_columns", error)
            self.user_failed(
                "process_columns", error, "the batch is failed and the task continues", Described(received)
            )
        self.metrics.executed[key] = self.metrics.executed.get(key, 0) + batch.num_rows

    def _fail_undecodable(self, undecodable: Sequence[UndecodableRow], edge: Edge | None) -> None:
        """Fails rows that the component does not get."""
        self.metrics.failed += len(undecodable)
        report_undecodable(undecodable, self.errors)
        if undecodable:
            self._fail(edge, undecodable[0].doing, undecodable[0].reason)

    def _execute(self, tup: Tuple) -> None:
        emitter = self._emitter
        if emitter.hooks and emitter.hook_calls is None:
            emitter.hook_calls = BoltHookCalls(emitter.hooks, self.plan.task_id, self.environment.clock.monotonic_s)
        try:
            if emitter.hook_calls is None:
                self._component.process(tup)
            else:
                emitter.hook_calls.execute(self._component.process, tup)
        except (Exception, SystemExit) as error:
            self.metrics.failed += 1
            self._fail(tup.id, "process", error)
            self.user_failed("process", error, "the tuple is failed and the task continues", tup)

    def _tick_if_due(self) -> bool:
        if self.ended or not self._ticks.is_due():
            return False
        try:
            self._component.process_tick(TupleHelper.make_tick_tuple())
        except (Exception, SystemExit) as error:
            self.user_failed("process_tick", error, "the task continues")
        self._ticks.restart()
        return True

    def _finish(self) -> None:
        try:
            self._component.finish()
        except (Exception, SystemExit) as error:
            line = self.errors.report("finish", error, "correct it and run the topology again")
            raise TopologyFailedError(line) from error
        self._queued.drain(self._queued_failed)  # of threads that `finish` has joined
        self._settle()
        self.end()

    def _fail(self, edge: object, doing: str, error: BaseException) -> None:
        if isinstance(edge, Edge) and self.environment.ledger is not None:
            cause = FailureCause.of(self.plan.component, self.plan.task_id, doing, error) if self._tells_why else None
            self.environment.ledger.fail(edge, NO_CAUSE if cause is None else encode_cause(cause))

    def _settle(self) -> None:
        acked, failed = self._emitter.acked, self._emitter.failed
        self.metrics.acked += len(acked)
        self.metrics.failed += len(failed)
        acked.clear()
        failed.clear()
        wrong, self._emitter.wrong[:] = list(self._emitter.wrong), []
        for error in wrong:
            self.user_failed("the component", error, "the task continues")
