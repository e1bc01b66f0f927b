"""The output side of a task: its streams, and the way of their segments into the data-out queue.

Belongs to the task thread. `SpoutEmitter` and `BoltEmitter` are the collectors that components are constructed with;
`specialised` gives the generated emit that replaces their general one once the component is initialised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from heron.api.definition import DEFAULT_STREAM
from heron.api.task_hook import EmitInfo, ITaskHook
from heron.api.tuple import Tuple
from heron.errors import EmitError, known, nearest
from heron.instance.baton import Baton
from heron.instance.emit_source import BOLT_SIGNATURE, SPOUT_SIGNATURE, make_add, make_emit
from heron.instance.hook_calls import BoltHookCalls
from heron.instance.in_batch import InBatch
from heron.instance.out_stream import OutStream, StreamOrigin
from heron.instance.tracked_stream import AnchoredStream
from heron.ipc.frame import Marker, marker_segment

__all__ = ["BoltEmitter", "Emitter", "SegmentSink", "SpoutEmitter"]

_ROOM_WAIT_S = 0.1  # an emit that finds the queue full looks again so often; the gateway wakes it anyway


class SegmentSink(Protocol):
    """Where segments go: the data-out queue, or the inboxes of a simulation."""

    def put(self, segments: Sequence[bytes]) -> None:
        """Takes the segments of one flush."""
        ...

    def has_room(self) -> bool:
        """Whether more may be emitted now."""
        ...

    def wait_for_room(self, timeout_s: float) -> None:
        """Sleeps until there may be room."""
        ...

    def hurry(self, limits: Sequence[list[int]], flush: Callable[[], None]) -> None:
        """Is to set these to zero, and to call `flush`, when the linger since a flush is over."""
        ...


class Emitter:
    """What spouts and bolts have in common."""

    signature = ""

    def __init__(self, origin: StreamOrigin, out: SegmentSink) -> None:
        self.origin = origin
        self.hooks: tuple[ITaskHook, ...] = ()
        self.streams: dict[str, OutStream] = {}
        self._adders: dict[str, Callable[..., None]] = {}
        self._out = out
        self._ids: list[object] | None = None
        self._emitted_before: dict[str, int] = {}
        self.baton = Baton()
        self.stop_requested: Callable[[], bool] = lambda: False  # an emit that waits for room lets go then
        self.overflowed = [False]  # whether there was a flush; a list: the spout's loop reads it after each call

    def set_streams(self, streams: Iterable[OutStream], *, ids: list[object] | None = None) -> None:
        """Takes the streams of a plan; what was emitted under the one before is sent first.

        `ids` is the list that takes the tup_ids of emits, where anybody asks for them.
        """
        self.flush()
        for name, stream in self.streams.items():
            self._emitted_before[name] = self.emitted(name)
            stream.emitted = 0
        self._ids = ids
        self.streams = {stream.definition.name: stream for stream in streams}
        self._out.hurry([stream.limit for stream in self.streams.values()], self.flush_meanwhile)
        self._adders = {
            name: make_add(stream, self._overflow_of(stream), ids=ids) for name, stream in self.streams.items()
        }

    def specialised(self) -> Callable[..., list[int] | None] | None:
        """The generated emit, or None where hooks want to see each call, or there is no default stream."""
        stream = self.streams.get(DEFAULT_STREAM)
        if stream is None or self.hooks:
            return None
        return make_emit(stream, self._overflow_of(stream), self.general_emit, self.signature, ids=self._ids)

    def flush(self) -> bool:
        """Sends all that was emitted; False when there was nothing."""
        segments = [segment for stream in self.streams.values() if stream.rows for segment in stream.flush()]
        if segments:
            self._out.put(segments)
        return bool(segments)

    def flush_meanwhile(self) -> None:
        """Gateway: flushes while the task thread is in the author's code, and only then."""
        if self.pending_rows() and self.baton.borrow():
            try:
                self.flush()
                self.overflowed[0] = True  # a spout whose calls last looks up: there may be commands and acks
            finally:
                self.baton.return_()

    def pending_rows(self) -> int:
        """Rows that wait for a flush."""
        return sum(len(stream.rows) for stream in self.streams.values())

    def emitted(self, stream: str) -> int:
        """Tuples emitted on a stream so far, whatever waits included."""
        current = self.streams.get(stream)
        return self._emitted_before.get(stream, 0) + (current.emitted + len(current.rows) if current else 0)

    def send_end(self, tasks: Sequence[int]) -> None:
        """Sends the END marker, behind all data, to every task downstream."""
        self.flush()
        if tasks:
            origin = self.origin
            marker = marker_segment(
                tasks,
                Marker.END,
                0,
                plan_version=origin.plan_version,
                source_task=origin.task_id,
                incarnation=origin.incarnation,
            )
            self._out.put([marker])

    def general_emit(self, *arguments: object) -> list[int] | None:
        """What the generated emit calls for whatever it was not written for."""
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
        """Appends a row to any stream; the receiving tasks when asked for.

        Raises:
            EmitError: when the stream or task is unknown, or the number of values is wrong.
        """
        target = self.streams.get(stream)
        if target is None:
            msg = f"emit to unknown stream {stream!r}{nearest(stream, self.streams)}; declared: {known(self.streams)}"
            raise EmitError(msg)
        if need_task_ids:
            self._flush_stream(target)
        self._check_direct(target, direct_task)
        target.direct[0] = () if direct_task is None else (direct_task,)
        try:
            self._adders[stream](values, tup_id, anchors)
        finally:
            target.direct[0] = ()
        for hook in self.hooks:
            hook.emit(EmitInfo(tuple(values), stream, self.origin.task_id, []))
        if not need_task_ids:
            return None
        self._flush_stream(target)
        return list(target.tasks_of_last)

    def _check_direct(self, stream: OutStream, direct_task: int | None) -> None:
        allowed = stream.routes.direct_tasks
        if direct_task is not None and direct_task not in allowed:
            msg = (
                f"stream {stream.definition.name!r}: direct_task {direct_task} is not a task of a consumer with "
                f"Grouping.DIRECT; these are {sorted(allowed)}"
            )
            raise EmitError(msg)

    def _overflow_of(self, stream: OutStream) -> Callable[[], None]:
        def overflow() -> None:
            self.overflowed[0] = True
            self._flush_stream(stream)
            while not (self._out.has_room() or self.stop_requested()):
                self._out.wait_for_room(_ROOM_WAIT_S)

        return overflow

    def _flush_stream(self, stream: OutStream) -> None:
        taken = self.baton.take_back()
        try:
            if segments := stream.flush():
                self._out.put(segments)
        finally:
            if taken:
                self.baton.return_()


class SpoutEmitter(Emitter):
    """`heron.api.SpoutCollector`."""

    signature = SPOUT_SIGNATURE

    def __init__(self, origin: StreamOrigin, out: SegmentSink) -> None:
        super().__init__(origin, out)
        self.ending = False

    def emit(
        self,
        values: Sequence[object],
        tup_id: object = None,
        stream: str = DEFAULT_STREAM,
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> list[int] | None:
        """Emits."""
        return self.add(values, stream, direct_task, need_task_ids, tup_id=tup_id)

    def general_emit(self, *arguments: object) -> list[int] | None:
        """`Emitter.general_emit`."""
        return self.emit(*arguments)  # type: ignore[arg-type]  # as the generated signature has them

    def end(self) -> None:
        """This task will make no new root."""
        self.ending = True


class BoltEmitter(Emitter):
    """`heron.api.BoltCollector`; acks and fails are counted, as delivery is at most once."""

    signature = BOLT_SIGNATURE

    def __init__(self, origin: StreamOrigin, out: SegmentSink) -> None:
        super().__init__(origin, out)
        self.acked: list[Tuple] = []
        self.failed: list[Tuple] = []
        self.hook_calls: BoltHookCalls | None = None

    def emit(
        self,
        values: Sequence[object],
        stream: str = DEFAULT_STREAM,
        anchors: Iterable[Tuple] | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> list[int] | None:
        """Emits."""
        return self.add(values, stream, direct_task, need_task_ids, anchors=anchors)

    def general_emit(self, *arguments: object) -> list[int] | None:
        """`Emitter.general_emit`."""
        return self.emit(*arguments)  # type: ignore[arg-type]  # as the generated signature has them

    def resolve_anchors(self, batch: InBatch | None) -> None:
        """The tuples of this batch will be used again: what hangs on them must no longer need them."""
        for stream in self.streams.values():
            if isinstance(stream, AnchoredStream):
                stream.anchors.resolve(batch)

    def ack(self, tup: Tuple) -> None:
        """This tuple is done with."""
        self.acked.append(tup)
        if self.hook_calls is not None:
            self.hook_calls.acked(tup)

    def fail(self, tup: Tuple) -> None:
        """This tuple failed."""
        self.failed.append(tup)
        if self.hook_calls is not None:
            self.hook_calls.failed(tup)
