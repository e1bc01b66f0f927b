"""When `process`, `process_tick` and `finish` are called, and when what they emitted is sent."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice, repeat

from heron.api.api_constants import TOPOLOGY_TICK_TUPLE_FREQ_SECS
from heron.api.bolt import Bolt
from heron.api.tuple import Tuple, TupleHelper
from heron.clock import monotonic_s
from heron.driver_kit.signals import Signals
from heron.errors import RemoteProtocolError, SerializationError
from heron.instance.batch_codec import decode_columns
from heron.instance.bolt_tracker import BoltTracker
from heron.instance.data_queue import Command, RootsSettled, SessionOpened
from heron.instance.emitter import BoltEmitter
from heron.instance.finish_roots import FinishRoots
from heron.instance.hook_calls import BoltHookCalls
from heron.instance.in_batch import UNTRACKED, InBatch, tracked_batch
from heron.instance.marker_aligner import EndAligner
from heron.instance.out_stream import OutStream
from heron.instance.runner import ComponentStoppedError, Runner
from heron.instance.task import Task
from heron.instance.tuple_source import TupleSource, TupleSources
from heron.instance.user_component import specialise
from heron.ipc.frame import (
    FRAME_HEADER_BYTES,
    Marker,
    SegmentHead,
    SegmentKind,
    parse_segment,
    segment_routes,
)

__all__ = ["BoltRunner"]

_log = logging.getLogger(__name__)

_WAIT_S = 0.25  # nothing to do: whatever comes wakes it, metrics go on
_FLUSH_EVERY_S = 0.0003  # flushes of a trickle keep this distance (see spout_runner)
_SLICE_S = 0.002  # so long `process` is called between two looks at the clock
_FIRST_SLICE = 8  # tuples
_LARGEST_SLICE = 4096

_NO_TUPLE = Tuple()


class BoltRunner(Runner):
    """Calls `process` for each tuple of each segment, in the order of arrival."""

    def __init__(self, task: Task, signals: Signals, component_class: type) -> None:
        self._bolt_emitter = BoltEmitter(task.origin(), task.gateway.data_out)
        super().__init__(task, self._bolt_emitter, signals, component_class)
        self._component = Bolt()
        self._sources = TupleSources(task.index)
        self._aligner = EndAligner(task.index.upstream_tasks(task.spec.component))
        tick_s = task.config.get(TOPOLOGY_TICK_TUPLE_FREQ_SECS)
        self._tick_s = float(tick_s) if isinstance(tick_s, int | float) else math.inf
        self._next_tick_s = monotonic_s() + self._tick_s
        self._tracker = BoltTracker(task.gateway.data_out) if task.tracks_acks else None
        self._afterwards = FinishRoots(self._bolt_emitter, task, self.user_failed)
        self._pool: list[Tuple] = []
        self._slice = _FIRST_SLICE
        self._last_flush_s = 0.0
        self._executed_any = False

    @property
    def component(self) -> Bolt:
        """The author's bolt."""
        return self._component

    def work(self) -> None:
        """`Runner.work`."""
        data_in, data_out = self.task.gateway.data_in, self.task.gateway.data_out
        if not data_out.has_room():
            self._flush_before_waiting()
            data_out.wait_for_room(_WAIT_S)
            return
        item = data_in.get()
        if isinstance(item, bytes):
            largest_bytes = self._process_frame(item)
            data_in.consume(len(item) - FRAME_HEADER_BYTES, largest_bytes)
        elif item is not None:
            self.handle(item)
        else:
            self._idle()
        self._tick_if_due()
        if not self.ended and self._aligner.complete():
            self._finish()

    def handle(self, command: Command) -> None:
        """`Runner.handle`."""
        if isinstance(command, RootsSettled):
            self._afterwards.take(command)
        elif isinstance(command, SessionOpened):
            self._afterwards.lose_all()
        super().handle(command)

    def specialise(self) -> None:
        """`Runner.specialise`."""
        if self._afterwards.begun:
            return  # its emits are roots now
        emitter = self._bolt_emitter
        fast = None if self.debug else emitter.specialised()
        if not emitter.hooks:
            specialise(self._component, {"emit": fast, "ack": emitter.acked.append, "fail": emitter.failed.append})
        elif emitter.hook_calls is None:
            emitter.hook_calls = BoltHookCalls(emitter.hooks, self.task.spec.task_id, monotonic_s)

    def apply_routes(self) -> None:
        """`Runner.apply_routes`."""
        make = OutStream if self._tracker is None else self._afterwards.make_stream(self._tracker)
        self.emitter.set_streams(self.task.out_streams(self.emitter.origin, make))
        self._sources.set_plan(self.task.index)
        self._aligner.set_upstream(self.task.index.upstream_tasks(self.task.spec.component))

    def _construct(self) -> None:
        self._component = self._class(delegate=self._bolt_emitter)
        target = self.task.queued_target
        target.emit, target.ack, target.fail = self._component.emit, self._component.ack, self._component.fail

    def _process_frame(self, frame: bytes) -> int:
        """Takes all segments; the size of the largest."""
        largest_bytes = 0
        try:
            for start, segment_end, _ in segment_routes(frame):
                if self._signals.stop_requested:
                    break  # an orderly stop does not wait for a second's worth of slow calls
                self._take_segment(frame, parse_segment(frame, start))
                largest_bytes = max(largest_bytes, segment_end - start)
        except RemoteProtocolError as error:
            self.task.errors.report(f"reading a frame of {len(frame)} bytes", error, "the rest of it is lost")
        return largest_bytes

    def _take_segment(self, frame: bytes, head: SegmentHead) -> None:
        try:
            if head.kind == SegmentKind.TUPLES:
                self._process_segment(memoryview(frame), head)
            elif head.kind == SegmentKind.MARKER and head.stream == Marker.END:
                self._aligner.end(head.source_task)
        except (RemoteProtocolError, SerializationError) as error:
            self.task.metrics.failed += head.rows
            self.task.errors.report(f"reading {head.rows} tuples of task {head.source_task}", error, "they are lost")

    def _process_segment(self, frame: memoryview, head: SegmentHead) -> None:
        batch = tracked_batch(head, self.task.spec.task_id) if self._tracker is not None else None
        try:
            serializer = self.task.serializers.reading(head.encoding, head.source_task)
            source = self._sources.of(head.source_task, head.stream)
            columns = decode_columns(frame[head.payload_start : head.end], head.rows, serializer)
        except (RemoteProtocolError, SerializationError):
            if batch is not None and self._tracker is not None:
                self._tracker.fail_whole(batch)
            raise
        if self.ended or self._afterwards.begun or not head.rows:
            if batch is not None and self._tracker is not None:
                self._tracker.ack_whole(batch)  # else its roots would come again for ever
                self._tracker.flush()
            return  # a doubled batch of a task that was restarted; this bolt has finished
        self._process_rows(source, columns, head.rows, batch)
        if not self._executed_any:
            self._executed_any = True
            self.task.note_first_tuple()

    def _process_rows(
        self, source: TupleSource, columns: list[Sequence[object]], rows: int, batch: InBatch | None
    ) -> None:
        """Slice by slice, so that ticks, flushes and metrics are in time however slow `process` is."""
        values = zip(*columns, strict=True) if columns else repeat((), rows)
        self._pool = source.pool.take(rows)
        if self._tracker is not None:
            self._tracker.in_work[0] = batch
        pairs = zip(self._pool, values, strict=False)
        done = 0
        executed, latency = self.task.metrics.executed, self.task.metrics.execute_latency
        if not self._waiting():
            self._last_flush_s = max(self._last_flush_s, monotonic_s())  # what this batch emits waits from here on
        while done < rows and not self._signals.stop_requested:
            size = min(self._slice, rows - done)
            start_s = monotonic_s()
            with self.emitter.baton:
                self._process_slice(islice(pairs, size))
            took_s = monotonic_s() - start_s
            done += size
            executed[source.key] = executed.get(source.key, 0) + size
            latency.add(took_s / size, size)
            self._slice = max(1, min(_LARGEST_SLICE, 4 * size, int(size * _SLICE_S / max(took_s, 1e-9))))
            if took_s > _SLICE_S or done < rows:
                self._between_slices(start_s + took_s)
        del pairs  # a zip holds on to the last pair that it gave
        self._settle_acks()  # before recycling: what waits there is held
        if self._tracker is not None:
            self._bolt_emitter.resolve_anchors(batch)
            self._tracker.in_work[0] = None
            now_s = monotonic_s()
            late = now_s - self._last_flush_s >= self.task.settings.linger_s
            if self._tracker.waiting >= self.task.settings.batch_rows or (late and self._tracker.waiting):
                self._flush(now_s)
        source.pool.recycle(rows, batch or UNTRACKED)

    def _process_slice(self, pairs: Iterator[tuple[Tuple, tuple[object, ...]]]) -> None:
        process: Callable[[Tuple], object] = self._component.process
        if (calls := self._bolt_emitter.hook_calls) is not None:
            process = partial(calls.execute, process)
        while True:
            tup: Tuple = _NO_TUPLE
            try:
                for tup, tup.values in pairs:  # the object is set, then its slot
                    process(tup)
                return
            except Exception as error:
                self._bolt_emitter.failed.append(tup)
                self.user_failed("process", error, "this tuple is failed, the task goes on", tup)

    def _between_slices(self, now_s: float) -> None:
        if now_s - self._last_flush_s >= self.task.settings.linger_s:
            self._flush(now_s)
            self._wait_between_slices()
        self._tick_if_due()
        self.task.publish_if_due(self.emitter, now_s)

    def _wait_between_slices(self) -> None:
        """A batch may make far more than it is: what each slice flushes must not pile up when it cannot leave."""
        data_out = self.task.gateway.data_out
        while not (data_out.has_room() or self._signals.stop_requested):
            data_out.wait_for_room(_WAIT_S)
            self.task.publish_if_due(self.emitter, monotonic_s())

    def _idle(self) -> None:
        """Flushes when there is nothing more to read, at some distance from the flush before; else waits."""
        data_in = self.task.gateway.data_in
        now_s = monotonic_s()
        self._settle_acks()  # of a thread of the component's own
        if self._waiting():
            since_s = now_s - self._last_flush_s
            if since_s >= _FLUSH_EVERY_S:
                self._flush(now_s)
            else:
                data_in.wait(_FLUSH_EVERY_S - since_s)
        else:
            data_in.wait(min(_WAIT_S, max(0.0, self._next_tick_s - now_s)))

    def _waiting(self) -> bool:
        """Whether tuples or acks wait for a flush."""
        return bool(self.emitter.pending_rows() or (self._tracker is not None and self._tracker.waiting))

    def _flush_before_waiting(self) -> None:
        """Output that must wait, for minutes perhaps, must not keep acks that are due: they would time out."""
        self._settle_acks()
        if self._tracker is not None and self._tracker.waiting:
            self._flush(monotonic_s())

    def _flush(self, now_s: float) -> None:
        """Sends what was emitted, and right behind it the acks that depend on it."""
        self._settle_acks()
        self.emitter.flush()
        if self._tracker is not None:
            self._tracker.flush()
        self._last_flush_s = now_s

    def _tick_if_due(self) -> None:
        if self.ended or monotonic_s() < self._next_tick_s:
            return
        try:
            with self.emitter.baton:
                self._component.process_tick(TupleHelper.make_tick_tuple())
        except Exception as error:
            self.user_failed("process_tick", error, "the task goes on")
        self._settle_acks()
        self._next_tick_s = monotonic_s() + self._tick_s

    def _finish(self) -> None:
        """Calls `finish`, once; the task ends when the trees of what that emitted are complete."""
        if not self._afterwards.begun:
            self._flush(monotonic_s())
            self._afterwards.begun = self._tracker is not None
            self._call_finish()
            self._flush(monotonic_s())
        if self._afterwards.complete():
            self.end()

    def _call_finish(self) -> None:
        self._afterwards.prepare(self._component, self.apply_routes)
        try:
            with self.emitter.baton:
                self._component.finish()
        except Exception as error:
            # What finish would have emitted is the result of the run: an end without it would be a silent loss.
            line = self.task.errors.report("finish", error, "correct it and run the topology again")
            raise ComponentStoppedError(line) from error

    def _settle_acks(self) -> None:
        emitter, metrics = self._bolt_emitter, self.task.metrics
        metrics.acked += len(emitter.acked)
        metrics.failed += len(emitter.failed)
        if self._tracker is not None:
            self._tracker.settle(emitter.acked, emitter.failed, self._pool)
            metrics.ignored_acks = self._tracker.ignored
        emitter.acked.clear()
        emitter.failed.clear()
