"""The loop of a bolt task: calls `process`, `process_tick` and `finish`, and flushes what they emitted and acked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from heron.api.api_constants import TOPOLOGY_ON_ERROR
from heron.api.bolt import Bolt
from heron.api.tuple import Tuple, TupleHelper
from heron.author_text import Described
from heron.clock import monotonic_s
from heron.driver_kit.signals import Signals
from heron.errors import RemoteProtocolError, SerializationError
from heron.instance.acks.tracked_batch import UNTRACKED, TrackedBatch
from heron.instance.input.ack_trust import AckTrust
from heron.instance.input.batch_reader import BatchReader, MarkerAligner, ReceivedBatch
from heron.instance.input.bolt_acks import BoltAcks, FinishRoots, TrackedBoltAcks
from heron.instance.input.channel_alignment import ChannelAlignment, Verdict
from heron.instance.input.key_sample import KeySample
from heron.instance.input.received_traces import ReceivedTraces, received_traces
from heron.instance.input.tuple_pool import TupleSource
from heron.instance.input.undecodable_rows import LostRow, report_lost
from heron.instance.input.watermarks import TaskWatermark, WatermarkStep, watermark_sources
from heron.instance.metrics.task_time import TimeUse
from heron.instance.output.emitter import BoltEmitter
from heron.instance.pacing import FlushPacer, SliceSize, TickTimer
from heron.instance.queues.data_queue import Command, PlanReceived, RootsSettled, SessionOpened, TracedFrameArrived
from heron.instance.runner import ComponentRunner, ComponentStoppedError
from heron.instance.task import Task
from heron.instance.user.user_component import BoltHookCalls, specialise
from heron.ipc.frames.frame import (
    FRAME_HEADER_BYTES,
    Marker,
    SegmentHead,
    SegmentKind,
    marker_value,
    parse_segment,
    segment_routes,
)
from heron.planner.physical_plan import PlanUpdate
from heron.spi.tracing import Stamp

if TYPE_CHECKING:  # topologies without columns or checkpoints need not import them
    from pyarrow import RecordBatch

    from heron.instance.input.column_input import ColumnInput, ReceivedColumns
    from heron.instance.state.task_checkpoints import TaskCheckpoints

__all__ = ["BoltRunner"]

_WAIT_S = 0.25  # without work: anything that arrives ends the wait, and metrics continue

_NO_TUPLE = Tuple()


class BoltRunner(ComponentRunner):
    """Calls `process` for each tuple of each segment, in the order of arrival."""

    def __init__(self, task: Task, signals: Signals, component_class: type) -> None:
        emitter = self._bolt_emitter = BoltEmitter(task.origin(), task.gateway.data_out)
        super().__init__(task, emitter, signals, component_class)
        self._component = Bolt()
        self._reader = BatchReader(task.index, task.serializers)
        self._aligner = MarkerAligner(task.index.upstream_tasks(task.spec.component))
        self._watermark = TaskWatermark(watermark_sources(task.index, task.spec.component))
        self._trust = AckTrust(self.specialise, self.user_failed)
        self._acks = self._new_acks()
        self._alignment: ChannelAlignment | None = None
        if task.checkpoints is not None:
            self._alignment = ChannelAlignment(task.settings.park_limit_bytes)
            self._restart_alignment(self._alignment)
        self._finish_roots = FinishRoots(emitter, task.metrics, self.user_failed)
        self._ticks = TickTimer(task.config, monotonic_s)
        self._pacer = FlushPacer(task.settings.linger_s)
        self._slice = SliceSize()
        self._arrived: Stamp | None = None  # of the frame in work, if it has traced rows
        self._keys = task.metrics.keys = KeySample.of(task.index, task.spec.component)
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
        data_in, data_out = self.task.gateway.data_in, self.task.gateway.data_out
        if not data_out.has_room():
            self._acks.settle()
            if self._acks.waiting:  # output may block the task for minutes, and the roots would expire
                self._flush(monotonic_s())
            self.emitter.time.waited(TimeUse.ROOM, data_out.wait_for_room(_WAIT_S))
            return
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
        if self._aligner.complete():
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
        make = self._finish_roots.make_stream if self._finish_roots.begun else self._acks.make_stream
        self.emitter.set_streams(self.task.out_streams(self.emitter.origin, make))
        self._reader.set_plan(self.task.index)
        upstream = self.task.index.upstream_tasks(self.task.spec.component)
        self._aligner.set_upstream(upstream)
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
                    self._process_segment(frame, parse_segment(frame, start))
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
            self._flush(monotonic_s())
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
        self._acks = self._new_acks()
        self._finish_roots = FinishRoots(self._bolt_emitter, self.task.metrics, self.user_failed)
        self._aligner = MarkerAligner(index.upstream_tasks(component))
        self._watermark = TaskWatermark(watermark_sources(index, component))
        self.task.metrics.watermark_us = None
        self._ticks.restart()
        if self._alignment is not None:
            self._restart_alignment(self._alignment)

    def _new_acks(self) -> BoltAcks:
        task, emitter, out = self.task, self._bolt_emitter, self.task.gateway.data_out
        if task.tracks_acks:
            acks: BoltAcks = TrackedBoltAcks(emitter, task.metrics, out, task.spec.task_id, task.failed_rows())
        elif task.config.get(TOPOLOGY_ON_ERROR) == "dead_letter":
            from heron.instance.bolt_letters import LetterAcks  # noqa: PLC0415  # most topologies need not import it

            acks = LetterAcks.of_task(task, emitter, lambda: None if self.ended or task.paused else self._component)
            self.take_letters = acks.take_letters
        else:
            acks = BoltAcks(emitter, task.metrics)
        acks.on_wrong = self._trust.wrong
        emitter.column_acks = acks
        return acks

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
                self._aligner.end(head.source_task)
                self._advance_watermark(self._watermark.end(head.source_task, monotonic_s()))
            elif head.kind == SegmentKind.MARKER and head.stream == Marker.PLAN:
                self._aligner.switch(head.source_task, marker_value(frame, head))
            elif head.kind == SegmentKind.MARKER and head.stream in (Marker.WATERMARK, Marker.IDLE):
                time_us, idle = marker_value(frame, head), head.stream == Marker.IDLE
                self._advance_watermark(
                    self._watermark.receive(head.source_task, time_us, idle=idle, now_s=monotonic_s())
                )
        except (RemoteProtocolError, SerializationError) as error:
            self.task.metrics.failed += head.rows
            self.task.errors.report(f"reading {self._reader.described(head)}", error, "these tuples are lost")

    def _process_tuples(self, frame: bytes, head: SegmentHead) -> None:
        tracked = self._acks.batch_of(head)
        try:
            batch = self._reader.read(frame, head)
            if self._column_input is None:
                batch.columns()
        except (RemoteProtocolError, SerializationError):
            self._acks.refuse(tracked)
            raise
        if self.ended or self._finish_roots.begun or not head.rows:
            self._acks.discard(tracked)  # sent again by a task that was restarted; this bolt has finished
            return
        if (sample := self.task.gateway.inspected.sample) is not None:
            source = batch.source
            sample.receive(source.key, source.task_id, source.fields, batch.first_rows)
        traces = received_traces(head, batch.source, self._arrived, self.task.spans)
        if self._column_input is None:
            self._process_batch(batch, tracked, traces)
        else:
            self._process_columns(self._column_input.columns_of(batch), tracked, traces)
        self.task.telemetry.note_tuple()

    def _process_batch(self, batch: ReceivedBatch, tracked: TrackedBatch | None, traces: ReceivedTraces | None) -> None:
        """Calls `process` slice by slice; see `SliceSize`."""
        streams, source, rows = self.emitter.streams.values(), batch.source, batch.rows
        tuples = source.pool.take(rows)
        self._acks.begin(tracked, tuples, self._report_lost(batch.lost))
        pairs = zip(tuples, batch.values(), strict=False)
        done, executed, latency = 0, self.task.metrics.executed, self.task.metrics.execute_latency
        if self._keys is not None:
            self._keys.look(batch)
        if not self._has_output():
            self._pacer.start_waiting(monotonic_s())
        while done < rows and not self._signals.stop_requested:
            size = wanted = min(self._slice.tuples, rows - done)
            if traces is not None:
                size = traces.begin(done, wanted, streams)
            start_s = monotonic_s()
            with self.emitter.lock.released():
                self._process_slice(batch.decoded(islice(pairs, size), done) if batch.lost else islice(pairs, size))
            took_s = monotonic_s() - start_s
            if traces is not None:
                traces.end(streams)
            executed[source.key] = executed.get(source.key, 0) + size - batch.lost_among(done, size)
            done += size
            latency.add(took_s / size, size)
            if self._slice.adapt(size, took_s, cut=size < wanted) or done < rows:
                self._between_slices(start_s + took_s)
        self._trust.note(self.task.metrics.acked + self.task.metrics.failed)
        del pairs  # a zip holds its last pair, and the pool would not reuse that object
        self._acks.end(tracked)  # before `recycle`, because acks that are not settled hold their tuples
        self._flush_due_acks()
        source.pool.recycle(rows, tracked or UNTRACKED)

    def _process_columns(
        self, received: ReceivedColumns, tracked: TrackedBatch | None, traces: ReceivedTraces | None
    ) -> None:
        """Calls `process_columns` once for all rows of a segment."""
        batch, source, component = received.batch, received.source, self._component
        self._acks.begin_columns(batch, tracked, self._report_lost(received.lost), source.key)
        if not self._has_output():
            self._pacer.start_waiting(monotonic_s())
        component.received_from = received.received_from
        streams = self.emitter.streams.values()
        if traces is not None:
            traces.begin_all(streams)
        start_s = monotonic_s()
        try:
            with self.emitter.lock.released():
                if batch.num_rows:
                    self._call_process_columns(batch, source)
        except BaseException as error:
            self._acks.blame(batch, "process_columns", error)
            self._acks.settle_columns(batch, acked=False)
            self.user_failed(
                "process_columns", error, "the batch is failed and the task continues", Described(received)
            )
        if traces is not None:
            traces.end(streams)
        end_s, rows, metrics = monotonic_s(), batch.num_rows, self.task.metrics
        metrics.executed[source.key] = metrics.executed.get(source.key, 0) + rows
        metrics.executed_batches[source.key] = metrics.executed_batches.get(source.key, 0) + 1
        metrics.execute_latency.add((end_s - start_s) / max(1, rows), rows)
        self._between_slices(end_s)
        self._flush_due_acks()

    def _report_lost(self, lost: Sequence[LostRow]) -> Sequence[LostRow]:
        """Counts and reports rows that the component does not get."""
        self.task.metrics.failed += len(lost)
        report_lost(lost, self.task.errors)
        return lost

    def _call_process_columns(self, batch: RecordBatch, source: TupleSource) -> None:
        if (calls := self._bolt_emitter.hook_calls) is None:
            self._component.process_columns(batch)
        else:
            tup = Tuple.source(*source.key, source.task_id)(None, (batch,), 0)
            calls.execute(lambda _: self._component.process_columns(batch), tup)

    def _flush_due_acks(self) -> None:
        if self._acks.waiting:
            now_s = monotonic_s()
            if self._acks.waiting >= self.task.settings.batch_rows or self._pacer.linger_is_over(now_s):
                self._flush(now_s)

    def _process_slice(self, pairs: Iterator[tuple[Tuple, tuple[object, ...]]]) -> None:
        process: Callable[[Tuple], object] = self._component.process
        if (calls := self._bolt_emitter.hook_calls) is not None:
            process = partial(calls.execute, process)
        while True:
            tup: Tuple = _NO_TUPLE
            try:
                for tup, tup.values in pairs:  # assigns the object, then its slot
                    process(tup)
                return
            except BaseException as error:
                self._bolt_emitter.failed.append(tup)
                self._acks.blame(tup, "process", error)
                self.user_failed("process", error, "the tuple is failed and the task continues", tup)

    def _between_slices(self, now_s: float) -> None:
        if self._pacer.linger_is_over(now_s):
            self._flush(now_s)
            self._wait_for_room()
        self._tick_if_due()
        self.task.telemetry.publish_if_due(self.emitter, now_s)

    def _wait_for_room(self) -> None:
        """Waits within a batch: its output may be far larger than the batch, and must not pile up in data-out."""
        data_out = self.task.gateway.data_out
        while not (data_out.has_room() or self._signals.stop_requested):
            self.emitter.time.waited(TimeUse.ROOM, data_out.wait_for_room(_WAIT_S))
            self.task.telemetry.publish_if_due(self.emitter, monotonic_s())

    def _idle(self) -> None:
        """Flushes when there is nothing to read, at some distance from the last flush; waits if nothing is due."""
        now_s = monotonic_s()
        self._acks.settle()  # of the component's own threads
        if not self._has_output():
            self._wait_for_input(min(_WAIT_S, max(0.0, self._ticks.next_s - now_s)))
        elif (wait_s := self._pacer.idle_wait_s(now_s)) > 0:
            self._wait_for_input(wait_s)
        else:
            self._flush(now_s)

    def _wait_for_input(self, wait_s: float) -> None:
        self.emitter.time.waited(
            TimeUse.PAUSED if self.ended else TimeUse.INPUT, self.task.gateway.data_in.wait(wait_s)
        )

    def _has_output(self) -> bool:
        """Whether tuples or acks wait for a flush."""
        return bool(self.emitter.pending_rows() or self._acks.waiting)

    def _flush(self, now_s: float) -> None:
        """Sends what was emitted, and directly behind it the acks that depend on it."""
        self._acks.settle()
        self.emitter.flush()
        self._acks.flush()
        self._pacer.flushed(now_s)

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
        self._acks.settle()
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
            self._flush(monotonic_s())
            self.emitter.send_marker(step.marker, receivers, step.time_us)
            self._wait_for_room()
        else:
            self._acks.settle()

    def _finish(self) -> None:
        """Calls `finish` once; the task ends when the trees of what `finish` emitted are complete."""
        if not self._finish_roots.begun:
            self.task.queued.drain(self._queued_failed)
            self._flush(monotonic_s())
            if self.task.tracks_acks:
                self._finish_roots.begin(self._component, self.apply_routes)
            self._call_finish()
            self.task.queued.drain(self._queued_failed)  # of threads that `finish` has joined
            self._flush(monotonic_s())
        if self._finish_roots.complete():
            self.end()

    def _leave_if_done(self, update: PlanUpdate) -> None:
        """Ends a task that an update removes, when nothing more comes for it; other tasks continue its work."""
        if self.task.is_removed() and self._aligner.switched(update):
            self.task.queued.drain(self._queued_failed)
            self._flush(monotonic_s())
            self.end()

    def _call_finish(self) -> None:
        try:
            with self.emitter.lock.released():
                self._component.finish()
        except BaseException as error:
            # The output of `finish` is the result of the run: to end without it would lose data silently.
            line = self.task.errors.report("finish", error, "correct it and run the topology again")
            raise ComponentStoppedError(line) from error
