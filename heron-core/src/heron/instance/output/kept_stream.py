"""A stream of roots that the engine may emit again: each flush notes what that takes. See `heron.instance.replay`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import compress, repeat
from typing import TYPE_CHECKING

from heron.api.definition import StreamDefinition
from heron.instance.acks.pending_roots import PendingRoots
from heron.instance.output.stream_origin import StreamOrigin
from heron.instance.output.stream_routes import StreamRoutes
from heron.instance.output.tracked_stream import RootStream
from heron.instance.replay.kept_roots import ColumnRoot, keep_rows
from heron.instance.replay.replayer import Replayer

if TYPE_CHECKING:
    from pyarrow import RecordBatch

    from heron.instance.output.column_output import ColumnOutput

__all__ = ["KeptRootStream"]

_NO_TASK: tuple[int, ...] = ()


class KeptRootStream(RootStream):
    """`RootStream` that gives its roots to a replayer. The bytes of a flush are shared equally among its roots."""

    __slots__ = ("_opened", "replayer")

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
        self._opened: list[object] = []

    def segments_of(self, rows: list[object]) -> list[bytes]:
        """`RootStream.segments_of`."""
        if not rows:
            return []
        ids = self.ids[: len(rows)]
        picks = self.routes.direct_picks
        directs: Iterable[Sequence[int]] = picks[0][: len(rows)] if picks else repeat(_NO_TASK)
        segments = super().segments_of(rows)
        if 0 < len(self._opened) < len(rows):  # the others have no id
            tracked = [tup_id is not None for tup_id in ids]
            rows, directs = list(compress(rows, tracked)), compress(directs, tracked)
        self._keep(rows, directs, sum(map(len, segments)))
        return segments

    def emit_root(
        self,
        columns: ColumnOutput,
        batch: RecordBatch,
        direct: int | None,
        tup_id: object,
        ids: Sequence[object] | None,
    ) -> list[bytes]:
        """`RootStream.emit_root`."""
        segments = super().emit_root(columns, batch, direct, tup_id, ids)
        if self._opened:
            own = columns.copied(batch)  # the author may write to the memory of the batch
            rows = [ColumnRoot(own, number) for number in ([None] if ids is None else range(own.num_rows))]
            self._keep(rows, repeat(_NO_TASK if direct is None else (direct,)), own.nbytes)
        return segments

    def _open(self, ids: list[object]) -> int:
        self._opened = ids
        return super()._open(ids)

    def _keep(self, rows: Sequence[object], directs: Iterable[Sequence[int]], size_bytes: int) -> None:
        """Puts the kept roots in the place of the ids that were opened, now that their size is known."""
        if opened := self._opened:
            share_bytes = self.replayer.kept(len(opened), size_bytes)
            opened[:] = keep_rows(opened, rows, self.definition.name, directs, share_bytes)
            self._opened = []
