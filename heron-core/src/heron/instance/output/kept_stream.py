"""A stream of roots that the engine may emit again: each flush notes what that takes. See `heron.instance.replay`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from heron.api.definition import StreamDefinition
from heron.instance.acks.pending_roots import PendingRoots
from heron.instance.output.stream_origin import StreamOrigin
from heron.instance.output.stream_routes import StreamRoutes
from heron.instance.output.tracked_stream import RootStream
from heron.instance.replay.kept_roots import ColumnRoot, KeptRows
from heron.instance.replay.replayer import Replayer

if TYPE_CHECKING:
    from pyarrow import RecordBatch

    from heron.instance.output.column_output import ColumnOutput

__all__ = ["KeptRootStream"]


class KeptRootStream(RootStream):
    """`RootStream` that gives its roots to a replayer. The bytes of a flush are shared equally among its roots."""

    __slots__ = ("_kept", "replayer")

    def __init__(
        self,
        number: int,
        definition: StreamDefinition,
        routes: StreamRoutes,
        origin: StreamOrigin,
        pending: PendingRoots,
        replayer: Replayer,
    ) -> None:
        super().__init__(number, definition, routes, origin, pending)
        self.replayer = replayer
        self._kept: KeptRows | None = None  # of the roots that are opened now

    def segments_of(self, rows: list[object]) -> list[bytes]:
        """`RootStream.segments_of`."""
        if not rows:
            return []
        ids, picks = self.ids[: len(rows)], self.routes.direct_picks
        kept = KeptRows(self.definition.name, rows, picks[0][: len(rows)] if picks else None)
        outer, self._kept = self._kept, kept  # a batch of columns flushes the rows before it
        try:
            segments = super().segments_of(rows)
        finally:
            self._kept = outer
        if 0 < kept.opened < len(rows):  # the others have no id
            kept.keep_only([tup_id is not None for tup_id in ids])
        self._count(kept, sum(map(len, segments)))
        return segments

    def whole_plain(self, payload: bytes, rows: int, of_rows: object, options: bytes = b"") -> list[bytes] | None:
        """`RootStream.whole_plain`: the values of a root are kept, so they have to be decoded."""
        return super().whole_plain(payload, rows, None) if of_rows is None else None

    def emit_root(
        self,
        columns: ColumnOutput,
        batch: RecordBatch,
        direct: int | None,
        tup_id: object,
        ids: Sequence[object] | None,
    ) -> list[bytes]:
        """`RootStream.emit_root`."""
        if tup_id is None and ids is None:
            return super().emit_root(columns, batch, direct, tup_id, ids)
        own = columns.copied(batch)  # the author may write to the memory of the batch
        rows = [ColumnRoot(own, number) for number in ([None] if ids is None else range(own.num_rows))]
        kept = self._kept = KeptRows(self.definition.name, rows, None if direct is None else [(direct,)] * len(rows))
        try:
            segments = super().emit_root(columns, batch, direct, tup_id, ids)
        finally:
            self._kept = None
        self._count(kept, own.nbytes)
        return segments

    def _open(self, ids: list[object]) -> int:
        if self._kept is not None:
            self._kept.opened = len(ids)
        return self.pending.open(ids, self._kept)

    def _count(self, kept: KeptRows, size_bytes: int) -> None:
        if kept.opened:
            kept.size_bytes = self.replayer.kept(kept.opened, size_bytes)
