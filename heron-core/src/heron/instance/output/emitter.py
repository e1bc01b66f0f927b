"""The output side of a task: its streams, and the flush of their segments into the data-out queue.

`SpoutEmitter` and `BoltEmitter` are the collectors that components are constructed with. `specialised` returns the
generated emit that replaces their general one once the component is initialised. They belong to the task thread, except
for `end_linger`, which the gateway calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from heron.api.context import ITaskHook
from heron.api.definition import DEFAULT_STREAM
from heron.api.names import is_a
from heron.api.plain_batch import PlainBatch
from heron.api.task_hook import EmitInfo
from heron.api.tuple import Tuple
from heron.author_text import class_name, short_text
from heron.clock import monotonic_s
from heron.errors import EmitError, PluginError, UsageError, known
from heron.instance.acks.foreign_tuples import foreign_tuple
from heron.instance.acks.tracked_batch import TrackedBatch
from heron.instance.metrics.task_time import TaskTime
from heron.instance.output.emit_contracts import ColumnAcks, SegmentSink, check_ids, mistaken_stream
from heron.instance.output.emit_lock import EmitLock
from heron.instance.output.event_time import to_microseconds
from heron.instance.output.fast_emit import fast_emit
from heron.instance.output.generated_emit import BOLT_SIGNATURE, SPOUT_SIGNATURE, make_add, make_emit
from heron.instance.output.kept_rows import keep_rows, set_probability
from heron.instance.output.out_stream import OutStream, column_output, trace_roots
from heron.instance.output.plain_output import send_plain
from heron.instance.output.stream_origin import ColumnRecord, StreamOrigin
from heron.instance.output.stream_routes import as_task_id
from heron.instance.output.tracked_stream import AnchoredStream, PlainAnchors, RootStream
from heron.instance.user.user_component import BoltHookCalls
from heron.ipc.documents.metric_names import EMIT_BATCH_BYTES, EMIT_BATCH_COUNT
from heron.ipc.frames.frame import Marker, destination_lists, marker_segment
from heron.spi.metricsink import Metric, MetricKind

if TYPE_CHECKING:
    from pyarrow import RecordBatch

    from heron.api.columns import Columns
    from heron.instance.output.column_output import ColumnOutput
    from heron.instance.output.stream_shedder import StreamShedder

__all__ = ["BoltEmitter", "Emitter", "SegmentSink", "SpoutEmitter", "check_ids"]

_ROOM_WAIT_S = 0.1  # how often an emit checks for a stop while the queue is full; the gateway wakes it for room


class Emitter:
    """The streams of a task, and what spouts and bolts share of their emits.

    `overflowed` tells the runner to call no more: there was a flush since the runner cleared it, or the spout ended.
    `probability` is the one with which the rows that wait were kept; it is 1 unless tuples are shed.
    """

    signature = ""

    def __init__(self, origin: StreamOrigin, out: SegmentSink) -> None:
        self.origin = origin
        self.hooks: tuple[ITaskHook, ...] = ()
        self.streams: dict[str, OutStream] = {}
        self._adders: dict[str, Callable[..., None]] = {}
        self._out = out
        self.put: Callable[[Sequence[bytes]], None] = out.put  # or a function that lets nothing leave
        self._ids: list[object] | None = None
        self._emitted_before: dict[str, int] = {}
        self._column_records: dict[str, ColumnRecord] = {}
        self.time = TaskTime()
        self.lock = EmitLock(self.time, self.flush_meanwhile)
        self.stop_requested: Callable[[], bool] = bool  # an emit that waits for room gives up on a stop
        self.overflowed = False
        self.on_error: Callable[[Exception], None] = _raise  # the runner shows and counts errors
        self._trace_one_in = 0
        self.probability = 1.0
        self.shedders: Mapping[str, StreamShedder] = {}
        out.on_linger_over(self.end_linger)

    def set_streams(self, streams: Iterable[OutStream], *, ids: list[object] | None = None) -> None:
        """Replaces the streams by those of a new plan, after a flush under the old plan.

        `ids` is a list to which emits append their `tup_id`; None where nobody needs them.
        """
        self.flush()
        for name, stream in self.streams.items():
            self._emitted_before[name] = self.emitted(name)
            stream.emitted = 0
        self._ids = ids
        self.streams = {stream.definition.name: stream for stream in streams}
        for name, stream in self.streams.items():
            keep_rows(self, name, stream)
        self._adders = {
            name: make_add(stream, self._overflow_of(stream), ids=ids) for name, stream in self.streams.items()
        }
        self.trace_roots(self._trace_one_in)

    def trace_roots(self, one_in: int) -> None:
        """Traces one in a number of the rows of each stream from now on; 0: none."""
        self._trace_one_in = one_in
        trace_roots(self.streams.values(), one_in, self.origin.spans)

    def specialised(self) -> Callable[..., list[int] | None] | None:
        """The generated emit; None if hooks must see each call, or if there is no default stream."""
        stream = self.streams.get(DEFAULT_STREAM)
        if stream is None or self.hooks:
            return None
        overflow, ids = self._overflow_of(stream), self._ids
        generated = make_emit(stream, overflow, self.general_emit, self.signature, ids=ids)
        return fast_emit(generated, stream, overflow, ids, spout=self.signature is SPOUT_SIGNATURE)

    def flush(self) -> bool:
        """Sends everything that was emitted; False if there was nothing."""
        segments = [segment for stream in self.streams.values() if stream.waiting() for segment in stream.flush()]
        if segments:
            self.put(segments)
        return bool(segments)

    def report_error(self, error: Exception) -> None:
        """Shows and counts an error of the author's code, whose call continues."""
        if not is_a(error, Exception):
            msg = f"report_error of a {class_name(error)}; give an exception"
            raise UsageError(msg)
        self.on_error(error)

    def end_linger(self) -> None:
        """Gateway: the linger after a flush is over. The next emit flushes; rows that wait are flushed if possible."""
        for stream in self.streams.values():
            stream.limit = 0
        self.flush_meanwhile()

    def flush_meanwhile(self) -> None:
        """Gateway: flushes if the task thread is in the author's code; otherwise `lock` calls it once that is so."""
        if self.pending_rows() and self.lock.try_acquire():
            try:
                self.flush()
                self.overflowed = True  # a spout whose calls block returns to its loop: there may be commands and acks
            finally:
                self.lock.release()

    def pending_rows(self) -> int:
        """Rows that wait for a flush."""
        return sum(stream.waiting() for stream in self.streams.values())

    def emitted(self, stream: str) -> int:
        """Tuples emitted on a stream so far, including those that wait for a flush."""
        current = self.streams.get(stream)
        return self._emitted_before.get(stream, 0) + (current.emitted + current.waiting() if current else 0)

    def column_metrics(self) -> list[Metric]:
        """The segments of columns that were sent, and their bytes, by stream."""
        metrics = []
        for stream, record in sorted(self._column_records.items()):
            label = {"stream": stream}
            metrics.append(Metric(EMIT_BATCH_COUNT, MetricKind.COUNTER, "batches", record.segments, label))
            metrics.append(Metric(EMIT_BATCH_BYTES, MetricKind.COUNTER, "bytes", record.payload_bytes, label))
        return metrics

    def send_marker(self, kind: Marker, tasks: Sequence[int], value: int = 0) -> None:
        """Sends a marker, behind all data, to these tasks downstream."""
        self.flush()
        if tasks:
            origin = self.origin
            markers = [
                marker_segment(
                    chosen,
                    kind,
                    value,
                    plan_version=origin.plan_version,
                    source_task=origin.task_id,
                    incarnation=origin.incarnation,
                )
                for chosen in destination_lists(tasks)
            ]
            self.put(markers)

    def general_emit(self, *arguments: object) -> list[int] | None:
        """`emit`, as the generated emit calls it for everything that it was not generated for."""
        raise NotImplementedError

    def add(
        self,
        values: Sequence[object],
        stream: str,
        direct_task: int | None,
        need_task_ids: bool,
        *,
        tup_id: object = None,
        anchors: Iterable[Tuple] | None = None,
    ) -> list[int] | None:
        """Appends a row to any stream; returns the receiving tasks if `need_task_ids`.

        Raises:
            EmitError: when the stream or task is unknown, the number of values is wrong, or the values are one text.
        """
        target = self._stream(stream)
        if isinstance(values, str | bytes):
            raise target.wrong_values(values)
        if need_task_ids:
            self._flush_stream(target)
        target.direct = () if direct_task is None else (self._direct(target, direct_task),)
        try:
            self._adders[stream](values, tup_id, anchors)
        finally:
            target.direct = ()
        for hook in self.hooks:
            hook.emit(EmitInfo(tuple(values), stream, self.origin.task_id, []))
        if not need_task_ids:
            return None
        self._flush_stream(target)
        return list(target.tasks_of_last)

    def column_target(
        self, given: Columns, stream: str, direct_task: int | None
    ) -> tuple[OutStream, ColumnOutput, RecordBatch]:
        """The stream of an emit of columns, its column side, and the checked batch.

        Raises:
            EmitError: when the stream or task is unknown, the columns do not fit, or the topology has no serializer of
                columns.
        """
        target = self._stream(stream)
        if direct_task is not None:
            self._direct(target, direct_task)
        elif target.routes.needs_direct:
            raise target.undirected()
        if target.columns is None:
            try:
                target.columns = column_output(target, self._column_records.setdefault(stream, ColumnRecord()))
            except PluginError as error:
                msg = f"emit_columns: {error}; set columns = True in the class of the component"
                raise EmitError(msg) from error
        rows = target.columns.checked(given)
        if target.traces is not None:
            with self.lock.held():
                target.traces.emitting(target.emitted + target.waiting(), rows.num_rows)
        return target, target.columns, rows

    def send_columns(self, target: OutStream, batch: RecordBatch, segments_of: Callable[[], list[bytes]]) -> None:
        """Sends what an emit of columns made due, and waits for room."""
        if (sample := self.origin.inspected.sample) is not None:
            sample.emit_columns(target.definition.name, target.definition.fields, batch)
        with self.lock.held():
            if segments := segments_of():
                self.put(segments)
        for hook in self.hooks:
            hook.emit(EmitInfo((batch,), target.definition.name, self.origin.task_id, []))
        if segments:
            self.overflowed = True
            self._wait_for_room()

    def _stream(self, stream: object) -> OutStream:
        target = self.streams.get(stream) if isinstance(stream, str) else None
        if target is None:
            msg = f"emit to unknown stream{mistaken_stream(stream, self.streams)}; declared: {known(self.streams)}"
            raise EmitError(msg)
        return target

    def _direct(self, stream: OutStream, direct_task: object) -> int:
        """The task that an emit names; an integer of any type."""
        subject = f"stream {stream.definition.name!r}: direct_task is"

        def allowed() -> str:
            return f"the tasks of the consumers with Grouping.DIRECT are {sorted(stream.routes.direct_tasks)}"

        found = as_task_id(direct_task, subject, allowed)
        if found not in stream.routes.direct_tasks:
            msg = f"{subject} {short_text(found)}, which is not a task of a consumer with Grouping.DIRECT; {allowed()}"
            raise EmitError(msg)
        return found

    def _overflow_of(self, stream: OutStream) -> Callable[[object], None]:
        def overflow(values: object) -> None:
            # A text fits as many fields as it has characters. The first emit comes here too; checking each would cost.
            if isinstance(values, str | bytes):
                with self.lock.held():
                    taken_back = stream.take_back()
                if taken_back:
                    raise stream.wrong_values(values)
                return
            if stream.traces is not None:
                with self.lock.held():  # a flush by the gateway takes the traced rows, too
                    only_traced = stream.traces.passed(stream)
                if only_traced:
                    return
            self.overflowed = True
            self._flush_stream(stream)
            self._wait_for_room()

        return overflow

    def _wait_for_room(self) -> None:
        while not (self._out.has_room() or self.stop_requested()):
            self.time.waited_for_room_in_emit(self._out.wait_for_room(_ROOM_WAIT_S))

    def _flush_stream(self, stream: OutStream) -> None:
        with self.lock.held():
            if segments := stream.flush():
                self.put(segments)


class SpoutEmitter(Emitter):
    """`heron.api.SpoutCollector`."""

    signature = SPOUT_SIGNATURE

    def __init__(self, origin: StreamOrigin, out: SegmentSink) -> None:
        super().__init__(origin, out)
        self.ending = False
        self.watermark_us: int | None = None
        self.watermark_receivers: Callable[[], Sequence[int]] = tuple

    def emit(
        self,
        values: Sequence[object],
        tup_id: object = None,
        stream: str = DEFAULT_STREAM,
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> list[int] | None:
        """Emits a tuple."""
        return self.add(values, stream, direct_task, need_task_ids, tup_id=tup_id)

    def emit_columns(
        self,
        batch: Columns,
        tup_id: object = None,
        stream: str = DEFAULT_STREAM,
        direct_task: int | None = None,
        ids: Sequence[object] | None = None,
    ) -> None:
        """Emits a batch as columns."""
        target, columns, rows = self.column_target(batch, stream, direct_task)
        if ids is not None:
            check_ids(ids, rows.num_rows, tup_id, stream)
        if isinstance(target, RootStream):
            self.send_columns(target, rows, lambda: target.emit_root(columns, rows, direct_task, tup_id, ids))
            return
        self.send_columns(target, rows, lambda: target.emit_columns(columns, rows, direct_task))
        if self._ids is not None and ids is not None:
            self._ids.extend(ids)
        elif self._ids is not None and tup_id is not None:
            self._ids.append(tup_id)

    def emit_plain(
        self, payload: bytes, rows: int, stream: str = DEFAULT_STREAM, ids: Sequence[object] | None = None
    ) -> Sequence[tuple[object, ...]]:
        """Emits a batch that is encoded."""
        left = send_plain(self, payload, rows, stream, ids)
        if not left and self._ids is not None and ids is not None:
            self._ids += [each for each in ids if each is not None]
        return left

    def general_emit(self, *arguments: object) -> list[int] | None:
        """`Emitter.general_emit`."""
        return self.emit(*arguments)  # type: ignore[arg-type]  # the arguments of the generated signature

    def emit_watermark(self, time_s: float, idle: bool = False) -> None:
        """Sends a watermark behind everything that was emitted; it never decreases."""
        time_us = to_microseconds(time_s)
        if self.watermark_us is None or time_us > self.watermark_us:
            self.watermark_us = time_us
        with self.lock.held():
            self.send_marker(Marker.IDLE if idle else Marker.WATERMARK, self.watermark_receivers(), self.watermark_us)
        self.overflowed = True
        self._wait_for_room()

    def set_probability(self, probability: float) -> None:
        """What is emitted from now on was kept with this probability."""
        set_probability(self, probability)

    def end(self) -> None:
        """Announces that this task emits no new root. The runner makes no further call."""
        self.ending = self.overflowed = True


class BoltEmitter(Emitter):
    """`heron.api.BoltCollector`; the runner settles `acked` and `failed` after each batch."""

    signature = BOLT_SIGNATURE

    def __init__(self, origin: StreamOrigin, out: SegmentSink) -> None:
        super().__init__(origin, out)
        self.wrong: list[UsageError] = []
        """Acks of tuples that the task did not receive; `BoltAcks.settle` reports them."""
        self.acked: list[Tuple] = []
        self.failed: list[Tuple] = []
        self.hook_calls: BoltHookCalls | None = None
        self.column_acks: ColumnAcks | None = None
        self.flush_output: Callable[[float], object] = _keep
        """`BoltOutput.flush_after_linger`."""

    def emit(
        self,
        values: Sequence[object],
        stream: str = DEFAULT_STREAM,
        anchors: Iterable[Tuple] | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> list[int] | None:
        """Emits a tuple."""
        return self.add(values, stream, direct_task, need_task_ids, anchors=anchors)

    def emit_columns(
        self,
        batch: Columns,
        stream: str = DEFAULT_STREAM,
        anchors: Iterable[Tuple | RecordBatch] | None = None,
        direct_task: int | None = None,
    ) -> None:
        """Emits a batch as columns."""
        target, columns, rows = self.column_target(batch, stream, direct_task)
        if isinstance(target, AnchoredStream):
            parents = target.parents_of(anchors)
            self.send_columns(target, rows, lambda: target.emit_anchored(columns, rows, direct_task, parents))
        else:
            self.send_columns(target, rows, lambda: target.emit_columns(columns, rows, direct_task))

    def emit_plain(
        self, payload: bytes, rows: int, stream: str = DEFAULT_STREAM, anchors: PlainAnchors = ()
    ) -> Sequence[tuple[object, ...]]:
        """Emits a batch that is encoded."""
        return send_plain(self, payload, rows, stream, anchors or None)

    def set_probability(self, probability: float) -> None:
        """What is emitted from now on was kept with this probability."""
        set_probability(self, probability)

    def settle_rows(self, batch: PlainBatch, places: Sequence[int], *, acked: bool) -> None:
        """Acks or fails rows of a batch."""
        if self.column_acks is not None:
            self.column_acks.settle_rows(batch, places, acked=acked)

    def flush_if_due(self) -> bool:
        """Sends what has waited for the linger, within a call of the component; returns whether a stop is requested."""
        with self.lock.held():
            self.flush_output(monotonic_s())
        self._wait_for_room()
        return self.stop_requested()

    def general_emit(self, *arguments: object) -> list[int] | None:
        """`Emitter.general_emit`."""
        return self.emit(*arguments)  # type: ignore[arg-type]  # the arguments of the generated signature

    def resolve_anchors(self, batch: TrackedBatch | None) -> None:
        """Resolves the anchors of emitted rows, because the tuples of this batch will be reused."""
        for stream in self.streams.values():
            if isinstance(stream, AnchoredStream):
                stream.anchors.resolve(batch)

    def ack(self, tup: Tuple | RecordBatch) -> None:
        """Acks a tuple or batch."""
        if not isinstance(tup, Tuple):
            self._settle_columns(tup, acked=True)
            return
        if tup._index < 0 and self._is_foreign("ack", tup):
            return
        self.acked.append(tup)
        if self.hook_calls is not None:
            self.hook_calls.acked(tup)

    def fail(self, tup: Tuple | RecordBatch) -> None:
        """Fails a tuple or batch."""
        if not isinstance(tup, Tuple):
            self._settle_columns(tup, acked=False)
            return
        if tup._index < 0 and self._is_foreign("fail", tup):
            return
        self.failed.append(tup)
        if self.hook_calls is not None:
            self.hook_calls.failed(tup)

    def _is_foreign(self, doing: str, tup: Tuple) -> bool:
        """Notes a tuple that the task did not receive; a tick is none."""
        if (wrong := foreign_tuple(doing, tup)) is not None:
            self.wrong.append(wrong)
        return wrong is not None

    def _settle_columns(self, batch: RecordBatch, *, acked: bool) -> None:
        if self.column_acks is None or not hasattr(batch, "num_rows"):
            msg = f"{'ack' if acked else 'fail'} of a {class_name(batch)}; give what was received"
            raise UsageError(msg)
        self.column_acks.settle_columns(batch, acked=acked)


def _keep(_now_s: float) -> None:
    """Where no runner has set `flush_output`, emits and acks do not wait."""


def _raise(error: Exception) -> None:
    raise error
