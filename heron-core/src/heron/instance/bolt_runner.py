"""The loop of a bolt task: takes what arrives in order, and calls ticks, watermarks and `finish` when they are due.

`heron.instance.batch_processor` calls `process`; `heron.instance.bolt_output` flushes what the bolt emitted and acked.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from heron.api.bolt import Bolt
from heron.api.plain_batch import PlainBatch
from heron.api.plain_components import PlainBolt
from heron.api.tuple import Tuple, TupleHelper
from heron.clock import monotonic_s
from heron.driver_kit.signals import Signals
from heron.errors import RemoteProtocolError, SerializationError
from heron.instance.acks.tracked_batch import UNTRACKED
from heron.instance.batch_processor import BatchProcessor
from heron.instance.bolt_output import BoltOutput, acks_of
from heron.instance.input.ack_trust import AckTrust
from heron.instance.input.batch_reader import BatchReader
from heron.instance.input.bolt_acks import BoltAcks
from heron.instance.input.channel_alignment import ChannelAlignment, Verdict
from heron.instance.input.early_segments import EarlySegments
from heron.instance.input.finish_roots import FinishRoots
from heron.instance.input.marker_counter import MarkerCounter
from heron.instance.input.received_traces import received_traces
from heron.instance.input.watermarks import TaskWatermark, WatermarkStep, watermark_sources
from heron.instance.metrics.task_time import TimeUse
from heron.instance.output.emitter import BoltEmitter
from heron.instance.pacing import TickTimer
from heron.instance.queues.data_queue import Command, PlanReceived, RootsSettled, SessionOpened, TracedFrameArrived
from heron.instance.runner import ComponentRunner, ComponentStoppedError, rest_s
from heron.instance.task import Task
from heron.instance.user.user_component import BoltHookCalls, specialise
from heron.ipc.frames.frame import (
    FRAME_HEADER_BYTES,
    Marker,
    OptionTag,
    SegmentHead,
    SegmentKind,
    marker_value,
    parse_segment,
    segment_routes,
)
from heron.planner.physical_plan import PlanUpdate
from heron.spi.tracing import Stamp

if TYPE_CHECKING:  # topologies without columns or checkpoints need not import them
    from heron.instance.input.column_input import ColumnInput
    from heron.instance.state.task_checkpoints import TaskCheckpoints

__all__ = ["BoltRunner"]

_NO_TUPLE = Tuple()


class BoltRunner(ComponentRunner):
    """Calls `process` for each tuple of each segment, in the order of arrival."""

    def __init__(self, task: Task, signals: Signals, component_class: type) -> None:
        emitter = self._bolt_emitter = BoltEmitter(task.origin(), task.gateway.data_out)
        super().__init__(task, emitter, signals, component_class)
        self._component = Bolt()
        self._reader = BatchReader(task.index, task.serializers)
        self._markers = MarkerCounter(task.index.upstream_tasks(task.spec.component))
        self._watermark = TaskWatermark(watermark_sources(task.index, task.spec.component))
        self._trust = AckTrust(self.specialise, self.user_failed)
        self._output = BoltOutput(task, emitter, self._new_acks())
        emitter.flush_output = self._output.flush_after_linger
        task.gateway.linger.grow_to(task.settings.queue_target_s / 2)
        self._processor = BatchProcessor(
            task, emitter, self._output, self._trust, self._between_slices, self.user_failed
        )
        self._alignment: ChannelAlignment | None = None
        if task.checkpoints is not None:
            self._alignment = ChannelAlignment(task.settings.park_limit_bytes)
            self._restart_alignment(self._alignment)
        self._early = EarlySegments(task.settings.park_limit_bytes)
        self._finish_roots = FinishRoots(emitter, task.metrics, self.user_failed)
        self._ticks = TickTimer(task.config, monotonic_s)
        self._arrived: Stamp | None = None  # of the frame in work, if it has traced rows
        self._receives_plain = issubclass(component_class, PlainBolt)
        self._column_input: ColumnInput | None = None
        if component_class.receives_columns():  # type: ignore[attr-defined]  # a bolt's class
            from heron.instance.input.column_input import ColumnInput  # noqa: PLC0415  # see above

            self._column_input = ColumnInput(task.serializers.for_columns())

    @property
    def component(self) -> Bolt:
        """`ComponentRunner.component`."""
        return self._component

    def work(self) -> None:
        """`ComponentRunner.work`."""
        if self._output.wait_if_full():
            return
        data_in = self.task.gateway.data_in
        if self._alignment is not None and (segment := self._alignment.take_ready()) is not None:
            self._align(self._alignment, segment, 0)
            item: bytes | Command | None = None
        elif (item := data_in.get()) is None:
            self._idle()
        if isinstance(item, bytes):
            largest_bytes = self._process_frame(item)
            self._arrived = None
            data_in.consume(len(item) - FRAME_HEADER_BYTES, largest_bytes)
        elif item is not None:
            self.handle(item)
        self._tick_if_due()
        if self.ended:
            return
        if self._markers.complete() and not self._early:
            self._finish()
        elif (update := self.task.index.plan.update) is not None:
            self._leave_if_done(update)

    def handle(self, command: Command) -> None:
        """`ComponentRunner.handle`."""
        if isinstance(command, TracedFrameArrived):
            self._arrived = command.at
        elif isinstance(command, RootsSettled):
            self._finish_roots.settle(command)
        elif isinstance(command, SessionOpened):
            self._finish_roots.lose_all()
        super().handle(command)
        if isinstance(command, PlanReceived):
            sources = watermark_sources(self.task.index, self.task.spec.component)
            self._advance_watermark(self._watermark.set_sources(sources, monotonic_s()))
            for segment in self._early.take(self.task.index):
                self._process_segment(segment, parse_segment(segment, 0))

    def specialise(self) -> None:
        """`ComponentRunner.specialise`."""
        if self._finish_roots.begun:
            return  # its emits make roots now
        emitter = self._bolt_emitter
        generated = None if self.debug else emitter.specialised()
        if not emitter.hooks:
            ack, fail = emitter.acked.append, emitter.failed.append
            trusts = self._column_input is None and self._trust.trusts
            settle = {"ack": ack, "fail": fail} if trusts else {}
            specialise(self._component, {"emit": generated, **settle})
        elif emitter.hook_calls is None:
            emitter.hook_calls = BoltHookCalls(emitter.hooks, self.task.spec.task_id, monotonic_s)

    def apply_routes(self) -> None:
        """`ComponentRunner.apply_routes`."""
        make = self._finish_roots.make_stream if self._finish_roots.begun else self._output.acks.make_stream
        self.emitter.set_streams(self.task.out_streams(self.emitter.origin, make))
        self._reader.set_plan(self.task.index)
        upstream = self.task.index.upstream_tasks(self.task.spec.component)
        self._markers.set_upstream(upstream)
        if self._alignment is not None:
            self._alignment.set_upstream(frozenset(self.task.index.former_tasks(upstream)))

    def _construct(self) -> None:
        bolt = self._component = self._class(delegate=self._bolt_emitter)
        target = self.task.queued_target
        target.emit, target.ack, target.fail = bolt.emit, bolt.ack, bolt.fail

    def _process_frame(self, frame: bytes) -> int:
        """Processes all segments; returns the size of the largest, in bytes."""
        largest_bytes = 0
        try:
            for start, segment_end, _ in segment_routes(frame):
                if self._signals.stop_requested:
                    break  # an orderly stop does not wait for many slow calls
                if self._alignment is None:
                    head = parse_segment(frame, start)
                    if not self._early.keeps(frame, head, start, self.task.index):
                        self._process_segment(frame, head)
                elif self._alignment.waits():
                    self._alignment.queue(frame[start:segment_end])
                else:
                    self._align(self._alignment, frame, start)
                largest_bytes = max(largest_bytes, segment_end - start)
        except RemoteProtocolError as error:
            self.task.errors.report(f"reading a frame of {len(frame)} bytes", error, "the rest of the frame is lost")
        return largest_bytes

    def _align(self, alignment: ChannelAlignment, frame: bytes, start: int) -> None:
        """Processes a segment, parks it, or drops it; saves the task's state when a checkpoint is aligned."""
        head, checkpoints = parse_segment(frame, start), self.task.checkpoints
        since = checkpoints.plan.since if checkpoints is not None else 0
        verdict = alignment.verdict(head.source_task, head.plan_version, since, self.task.index.plan.version)
        if verdict is Verdict.PARK:
            if alignment.park(frame[start : head.end]):
                self._give_up(alignment)
        elif verdict is Verdict.PROCESS:
            if head.kind == SegmentKind.MARKER and head.stream == Marker.CHECKPOINT:
                alignment.mark(head.source_task, marker_value(frame, head), monotonic_s())
                self._save_if_aligned(alignment)
            else:
                self._process_segment(frame, head)

    def _save_if_aligned(self, alignment: ChannelAlignment) -> None:
        number, checkpoints = alignment.aligned(), self.task.checkpoints
        if number and checkpoints is not None:
            self._output.flush(monotonic_s())
            align_s = alignment.finish(number, monotonic_s())
            checkpoints.save(number, self._component, ended=self.ended, align_s=align_s)
            self._mark_checkpoint(number)

    def _give_up(self, alignment: ChannelAlignment) -> None:
        """Too much is parked. The marker is sent, so that tasks downstream do not wait for it."""
        number, checkpoints = alignment.under_way(), self.task.checkpoints
        if checkpoints is not None:
            reason = (
                f"{alignment.parked_bytes} bytes are parked for its alignment, the limit is "
                f"{self.task.settings.park_limit_bytes} bytes (heron.checkpoint.park.bytes); "
                "find what slows the other inputs down"
            )
            alignment.finish(number, monotonic_s())
            checkpoints.give_up(number, reason)
            self._mark_checkpoint(number)

    def _reset(self) -> None:
        """`ComponentRunner._reset`."""
        index, component = self.task.index, self.task.spec.component
        self._bolt_emitter.acked.clear()
        self._bolt_emitter.failed.clear()
        self._output.acks = self._new_acks()
        self._finish_roots.end()
        self._finish_roots = FinishRoots(self._bolt_emitter, self.task.metrics, self.user_failed)
        self._markers = MarkerCounter(index.upstream_tasks(component))
        self._watermark = TaskWatermark(watermark_sources(index, component))
        self.task.metrics.watermark_us = None
        self._ticks.restart()
        if self._alignment is not None:
            self._restart_alignment(self._alignment)

    def _new_acks(self) -> BoltAcks:
        acks = self._bolt_emitter.column_acks = acks_of(self.task, self._bolt_emitter, self._working)
        acks.on_wrong = self._trust.wrong
        return acks

    def _working(self) -> Bolt | None:
        return None if self.ended or self.task.paused else self._component

    def _restart_alignment(self, alignment: ChannelAlignment) -> None:
        index, orders = self.task.index, self.task.index.plan.checkpoints
        upstream = index.former_tasks(index.upstream_tasks(self.task.spec.component))
        alignment.restart(frozenset(upstream), orders.number if orders is not None else 0)

    def _follow_checkpoints(self, checkpoints: TaskCheckpoints) -> None:
        super()._follow_checkpoints(checkpoints)
        if self._alignment is not None:
            self._alignment.open()  # segments that were sent under this plan may have arrived before it
            self._save_if_aligned(self._alignment)

    def _process_segment(self, frame: bytes, head: SegmentHead) -> None:
        try:
            if head.kind == SegmentKind.TUPLES:
                self._process_tuples(frame, head)
            elif head.kind == SegmentKind.MARKER and head.stream == Marker.END:
                self._markers.end(head.source_task)
                self._advance_watermark(self._watermark.end(head.source_task, monotonic_s()))
            elif head.kind == SegmentKind.MARKER and head.stream == Marker.PLAN:
                self._markers.switch(head.source_task, marker_value(frame, head))
            elif head.kind == SegmentKind.MARKER and head.stream in (Marker.WATERMARK, Marker.IDLE):
                time_us, idle = marker_value(frame, head), head.stream == Marker.IDLE
                self._advance_watermark(
                    self._watermark.receive(head.source_task, time_us, idle=idle, now_s=monotonic_s())
                )
        except (RemoteProtocolError, SerializationError) as error:
            self.task.metrics.failed += head.rows
            self.task.errors.report(f"reading {self._reader.described(head)}", error, "these tuples are lost")

    def _process_tuples(self, frame: bytes, head: SegmentHead) -> None:
        acks = self._output.acks
        tracked = acks.batch_of(head)
        try:
            passes = self._receives_plain and acks.takes_plain and OptionTag.TRACE not in head.options
            passes = passes and not self._bolt_emitter.hooks
            batch = self._reader.read(frame, head, keeps_plain=passes)
            sample = self.task.gateway.inspected.sample
            if self._column_input is None and (not passes or sample is not None or self._processor.wants_values(batch)):
                batch.columns()  # here, where a batch that does not decode is failed
            plain = batch.plain() if passes else None
        except (RemoteProtocolError, SerializationError):
            acks.refuse(tracked)
            raise
        if self.ended or self._finish_roots.begun or not head.rows:
            acks.discard(tracked)  # sent again by a task that was restarted; this bolt has finished
            return
        if sample is not None:
            source = batch.source
            sample.receive(source.key, source.task_id, source.fields, batch.first_rows)
        traces = received_traces(head, batch.source, self._arrived, self.task.spans)
        if plain is not None and isinstance(self._component, PlainBolt):
            source = batch.source
            given = PlainBatch(*source.key, source.task_id, batch.rows, plain, tracked or UNTRACKED)
            self._processor.process_plain(self._component, batch, given)
        elif self._column_input is None:
            self._processor.process_rows(self._component, batch, tracked, traces)
        else:
            columns = self._column_input.columns_of(batch)
            self._processor.process_columns(self._component, columns, tracked, traces)
        self.task.telemetry.note_tuple()

    def _between_slices(self, now_s: float) -> None:
        self._output.flush_if_due(now_s)
        self._tick_if_due()
        self.task.telemetry.publish_if_due(self.emitter, now_s)

    def _idle(self) -> None:
        """Flushes when there is nothing to read, at some distance from the last flush; waits if nothing is due."""
        now_s = monotonic_s()
        self._output.acks.settle()  # of the component's own threads
        if not self._output.waits():
            until_tick_s = math.inf if self.ended else max(0.0, self._ticks.next_s - now_s)
            self._wait_for_input(min(rest_s(self.task), until_tick_s))
        elif (wait_s := self._output.idle_wait_s(now_s)) > 0:
            self._wait_for_input(wait_s)
        else:
            self._output.flush(now_s)

    def _wait_for_input(self, wait_s: float) -> None:
        gateway = self.task.gateway
        if slept_s := gateway.data_in.wait(wait_s):
            gateway.linger.ran_dry(monotonic_s())
        self.emitter.time.waited(TimeUse.PAUSED if self.ended else TimeUse.INPUT, slept_s)

    def _tick_if_due(self) -> None:
        if self.ended or not self._ticks.is_due():
            return
        if self.task.is_prepared():
            self._ticks.restart()
            return
        try:
            with self.emitter.lock.released():
                self._component.process_tick(TupleHelper.make_tick_tuple())
        except BaseException as error:
            self.user_failed("process_tick", error, "the task continues")
        self._output.acks.settle()
        self._ticks.restart()

    def _advance_watermark(self, step: WatermarkStep | None) -> None:
        """Calls `process_watermark` if the task's watermark has grown; forwards it behind what the call emitted."""
        if step is None or self.ended or self._finish_roots.begun:
            return
        if step.has_grown:
            self.task.metrics.watermark_us = step.time_us
            try:
                with self.emitter.lock.released():
                    self._component.process_watermark(step.time_s)
            except BaseException as error:
                self.user_failed("process_watermark", error, "the task continues")
        if receivers := self._receivers():
            self._output.flush(monotonic_s())
            self.emitter.send_marker(step.marker, receivers, step.time_us)
            self._output.wait_for_room()
        else:
            self._output.acks.settle()

    def _finish(self) -> None:
        """Calls `finish` once; the task ends when the trees of what `finish` emitted are complete."""
        if not self._finish_roots.begun:
            self.task.queued.drain(self._queued_failed)
            self._output.flush(monotonic_s())
            if self.task.tracks_acks:
                self._finish_roots.begin(self._component, self.apply_routes, self._output.acks.check_anchors)
            self._call_finish()
            self.task.queued.drain(self._queued_failed)  # of threads that `finish` has joined
            self._output.flush(monotonic_s())
        if self._finish_roots.complete():
            self.end()

    def _leave_if_done(self, update: PlanUpdate) -> None:
        """Ends a task that an update removes, when nothing more comes for it; other tasks continue its work."""
        if self.task.is_removed() and self._markers.switched(update):
            self.task.queued.drain(self._queued_failed)
            self._output.flush(monotonic_s())
            self.end()

    def _call_finish(self) -> None:
        try:
            with self.emitter.lock.released():
                self._component.finish()
        except BaseException as error:
            # The output of `finish` is the result of the run: to end without it would lose data silently.
            line = self.task.errors.report("finish", error, "correct it and run the topology again")
            raise ComponentStoppedError(line) from error
