"""The simulator's stream managers: a task's segments go directly into the inboxes of the tasks that they name.

Segments stay bytes on the way, so that values are copied, rejected or too large exactly as between processes. At least
once, each emit leaves at once, under its roots.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from heron.api.definition import DEFAULT_STREAM
from heron.api.tuple import Tuple
from heron.instance.acks.foreign_tuples import foreign_tuple
from heron.instance.acks.owed_replays import OwedReplays
from heron.instance.codec.batch_codec import decode_columns, rows_of
from heron.instance.codec.plain import PLAIN
from heron.instance.input.received_batches import ReceivedBatches
from heron.instance.output.emitter import BoltEmitter, SpoutEmitter, check_ids
from heron.instance.output.stream_origin import StreamOrigin
from heron.instance.output.tracked_stream import checked_anchors, listed_anchors
from heron.instance.replay.kept_roots import ColumnRoot, KeptRoot
from heron.instance.replay.replayer import Replayer
from heron.ipc.frames.frame import SegmentHead, parse_segment
from heron.ipc.frames.tracking import NO_CAUSE
from heron_simulator.ack_ledger import AckLedger, Edge, Root

if TYPE_CHECKING:
    from pyarrow import RecordBatch

    from heron.api.columns import Columns

__all__ = ["Delivery", "Inboxes", "Outbox", "TrackedBoltEmitter", "TrackedSpoutEmitter"]


@dataclass(frozen=True, slots=True)
class Delivery:
    """A segment for one task; where trees are tracked, `edge` is the id of its only tuple, or of its batch."""

    data: bytes
    head: SegmentHead
    edge: Edge | None


Inboxes = Mapping[int, deque[Delivery]]
"""The deliveries that wait for each task, by task id."""


class Outbox:
    """`heron.instance.output.emitter.SegmentSink` of one task."""

    def __init__(self, inboxes: Inboxes, ledger: AckLedger | None) -> None:
        self._inboxes = inboxes
        self._ledger = ledger
        self.roots: tuple[Root, ...] = ()
        self._put_bytes = 0

    def take_size(self) -> int:
        """The bytes that were put since the last call."""
        size_bytes, self._put_bytes = self._put_bytes, 0
        return size_bytes

    @contextmanager
    def under(self, roots: tuple[Root, ...]) -> Iterator[None]:
        """Segments that are put within this context belong to the trees of these roots."""
        self.roots = roots
        try:
            yield
        finally:
            self.roots = ()

    def put(self, segments: Sequence[bytes]) -> None:
        """`SegmentSink`."""
        for data in segments:
            self._put_bytes += len(data)
            head = parse_segment(data, 0)
            for task_id in head.destinations:
                edge = self._ledger.edge(self.roots) if self._ledger is not None and self.roots else None
                self._inboxes[task_id].append(Delivery(data, head, edge))

    def has_room(self) -> bool:
        """`SegmentSink`: always True; the schedule keeps inboxes short."""
        return True

    def wait_for_room(self, timeout_s: float) -> float:
        """`SegmentSink`: never called."""
        return 0.0

    def on_linger_over(self, action: Callable[[], None]) -> None:
        """`SegmentSink`: never calls it, because each step ends with a flush."""


class TrackedSpoutEmitter(SpoutEmitter):
    """A spout's collector: opens a root for each emit that has an id."""

    def __init__(self, origin: StreamOrigin, out: Outbox, ledger: AckLedger, replays: OwedReplays) -> None:
        super().__init__(origin, out)
        self._outbox = out
        self._ledger = ledger
        self._replays = replays
        self.replayer: Replayer | None = None  # keeps the values of roots, if the engine emits failed ones again

    def emit(
        self,
        values: Sequence[object],
        tup_id: object = None,
        stream: str = DEFAULT_STREAM,
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> list[int] | None:
        """Emits a tuple."""
        roots = self._roots_of(tup_id)
        if self.replayer is not None and not isinstance(values, str | bytes) and isinstance(values, Iterable):
            values = tuple(values)  # an iterator has them once
        try:
            with self._outbox.under(roots):
                tasks = super().emit(values, tup_id, stream, direct_task, need_task_ids)
                self.flush()
        except Exception:
            for root in roots:
                self._ledger.discard(root)
            raise
        if self.replayer is not None:
            self._keep(self.replayer, roots, values[0] if len(values) == 1 else values, stream, direct_task)
        self._ledger.release(roots)
        return tasks

    def emit_columns(
        self,
        batch: Columns,
        tup_id: object = None,
        stream: str = DEFAULT_STREAM,
        direct_task: int | None = None,
        ids: Sequence[object] | None = None,
    ) -> None:
        """Emits a batch as columns; with `ids`, its rows one by one."""
        _, _, rows = self.column_target(batch, stream, direct_task)
        if ids is not None:
            check_ids(ids, rows.num_rows, tup_id, stream)
            for place, row_id in enumerate(ids):
                self.emit_columns(rows.slice(place, 1), row_id, stream, direct_task)
            return
        roots = self._roots_of(tup_id)
        with self._outbox.under(roots):
            super().emit_columns(rows, None, stream, direct_task)
            self.flush()
        if self.replayer is not None:
            self._keep(self.replayer, roots, ColumnRoot(rows, None), stream, direct_task)
        self._ledger.release(roots)

    def emit_plain(
        self, payload: bytes, rows: int, stream: str = DEFAULT_STREAM, ids: Sequence[object] | None = None
    ) -> Sequence[tuple[object, ...]]:
        """Returns the rows: each is emitted under its root."""
        return rows_of(decode_columns(payload, rows, PLAIN), rows)

    def _keep(
        self, replayer: Replayer, roots: Sequence[Root], row: object, stream: str, direct_task: int | None
    ) -> None:
        direct = () if direct_task is None else (direct_task,)
        for root in roots:
            size_bytes = replayer.kept(1, self._outbox.take_size())
            root.tup_id = KeptRoot(root.tup_id, row, stream, direct, size_bytes)

    def _roots_of(self, tup_id: object) -> tuple[Root, ...]:
        if tup_id is None:
            return ()
        self._replays.opened((tup_id,))
        return (self._ledger.open(self.origin.task_id, tup_id),)


class TrackedBoltEmitter(BoltEmitter):
    """A bolt's collector: emits under the roots of the anchors, and passes acks and fails to the ledger."""

    def __init__(self, origin: StreamOrigin, out: Outbox, ledger: AckLedger) -> None:
        super().__init__(origin, out)
        self.received = ReceivedBatches[object]()  # its edge, or UNTRACKED
        self.cause = NO_CAUSE  # of a call of `fail`
        self._outbox = out
        self._ledger = ledger

    def emit(
        self,
        values: Sequence[object],
        stream: str = DEFAULT_STREAM,
        anchors: Iterable[Tuple] | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> list[int] | None:
        """Emits a tuple."""
        listed = self._listed(anchors)
        with self._outbox.under(self._roots(listed)):
            tasks = super().emit(values, stream, None, direct_task, need_task_ids)
            self.flush()
        return tasks

    def emit_columns(
        self,
        batch: Columns,
        stream: str = DEFAULT_STREAM,
        anchors: Iterable[Tuple | RecordBatch] | None = None,
        direct_task: int | None = None,
    ) -> None:
        """Emits a batch as columns."""
        with self._outbox.under(self._roots(self._listed(anchors))):
            super().emit_columns(batch, stream, None, direct_task)
            self.flush()

    def emit_plain(
        self, payload: bytes, rows: int, stream: str = DEFAULT_STREAM, anchors: object = ()
    ) -> Sequence[tuple[object, ...]]:
        """Returns the rows: each is emitted under the roots of its anchors."""
        return rows_of(decode_columns(payload, rows, PLAIN), rows)

    def ack(self, tup: Tuple | RecordBatch) -> None:
        """Acks a tuple or batch."""
        super().ack(tup)
        if isinstance(edge := self._edge_of(tup), Edge):
            self._ledger.ack(edge, tup._index if isinstance(tup, Tuple) else 0)

    def fail(self, tup: Tuple | RecordBatch) -> None:
        """Fails a tuple or batch."""
        super().fail(tup)
        if isinstance(edge := self._edge_of(tup), Edge):
            self._ledger.fail(edge, self.cause)

    def _listed(self, anchors: Iterable[Tuple | RecordBatch] | None) -> list[Tuple | RecordBatch]:
        """The anchors, checked as the streams of a task on processes check them."""
        listed = [] if anchors is None else [*listed_anchors(anchors)]
        for each in listed:
            if self.received.get(each) is None:
                (tup,) = checked_anchors((each,))
                if tup._index < 0 and (wrong := foreign_tuple("anchor", tup)) is not None:
                    self.wrong.append(wrong)
        return cast("list[Tuple | RecordBatch]", listed)

    def _roots(self, anchors: Iterable[Tuple | RecordBatch]) -> tuple[Root, ...]:
        edges = [edge for edge in map(self._edge_of, anchors) if isinstance(edge, Edge)]
        return tuple(dict.fromkeys(root for edge in edges for root in edge.roots if root.live))

    def _edge_of(self, received: Tuple | RecordBatch) -> object:
        if isinstance(received, Tuple):
            return received.id if received._index >= 0 else None  # a copy is not what was received
        return self.received.get(received)
