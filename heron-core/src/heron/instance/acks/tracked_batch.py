"""A received batch whose tuples must be acked: the roots of its tuples, and which tuples are settled.

A batch lives as long as one of its tuples. While the batch is in work its tuples do not refer to it: a pooled tuple
carries its place (`Tuple._index`), and the batch is the one in work. When the work is over, each tuple that the user
keeps gets the batch as its id.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from heron.errors import RemoteProtocolError
from heron.ipc.frames.frame import OptionTag, SegmentHead
from heron.ipc.frames.tracking import MAX_DERIVED_ROWS

__all__ = ["UNTRACKED", "AckedRows", "TrackedBatch", "tracked_batch"]

_SIZE = 8  # bytes of a root, key or number

UNTRACKED = object()
"""The id of a kept tuple of an untracked batch; None would mean that the tuple is of the batch in work."""


class TrackedBatch:
    """The roots of a batch's rows, as the segment lists them.

    Row n has the root ``root_base + number`` or ``roots[n]``. With `root_rows`, row n has all ``roots[k]`` for which
    ``root_rows[k] == n``: none, one or several. The key of a row derives from `batch_key` and the row's number, which
    is n or ``numbers[n]``. `arrays` belongs to `heron.instance.acks.batch_arrays`.

    The component gets `tuples` tuples for it: one for each row, unless the batch is a unit, which is one row here. A
    unit is settled with the last of its tuples, and fails with the first that fails.
    """

    __slots__ = (
        "_settled",
        "acks_sent",
        "arrays",
        "batch_key",
        "numbers",
        "root_base",
        "root_rows",
        "roots",
        "rows",
        "task_id",
        "tuples",
    )

    def __init__(self, task_id: int, rows: int, batch_key: int, tuples: int | None = None) -> None:
        self.task_id = task_id
        self.rows = rows
        self.tuples = rows if tuples is None else tuples
        self.batch_key = batch_key
        self.numbers: memoryview | None = None
        self.root_base: int | None = None
        self.roots: memoryview | None = None
        self.root_rows: memoryview | None = None
        self.arrays: object = None
        self.acks_sent = False  # whether any ack of the batch is sent
        self._settled: bytearray | None = None  # one byte per tuple: 1 settled, 2 its ack is sent

    def is_range(self) -> bool:
        """Whether an ack of all tuples is one record: one range of roots, and nothing was emitted under them."""
        few = self.rows <= MAX_DERIVED_ROWS
        return few and self.root_base is not None and self.numbers is None and self.arrays is None

    @property
    def is_unit(self) -> bool:
        """Whether all its tuples are one row to the tracking."""
        return self.rows != self.tuples

    def untouched(self) -> bool:
        """Whether no tuple is settled."""
        return self._settled is None

    def settle_all(self) -> None:
        """Marks every tuple as settled; only if `untouched`."""
        self._settled = bytearray(b"\1") * self.tuples

    def rows_acked(self, fresh: list[int]) -> list[int]:
        """The rows that these tuples settle by their acks: they were settled just now."""
        if not self.is_unit:
            return fresh
        return [0] if fresh and self._settled is not None and 0 not in self._settled else []

    def rows_failed(self, fresh: list[int]) -> list[int]:
        """The rows that these tuples settle by their fails: they were settled just now."""
        if not self.is_unit:
            return fresh
        if fresh:
            self.settle_all()
        return [0] if fresh else []

    def settle(self, places: list[int]) -> list[int]:
        """Marks tuples as settled; returns those that were not settled before, each once."""
        marks = self._settled
        if marks is None:
            marks = self._settled = bytearray(self.tuples)
        fresh = [place for place in places if not marks[place]]
        for place in fresh:
            marks[place] = 1
        return fresh if len(set(fresh)) == len(fresh) else list(dict.fromkeys(fresh))

    def note_acks_sent(self, places: Sequence[int] | None, failed: Sequence[int] = ()) -> None:
        """The acks of these rows (None: of all but `failed`) are sent; they do not cover what is emitted from now on.

        The failed rows are settled without an ack.
        """
        self.acks_sent = True
        if places is None or self._settled is None or self.is_unit:
            self._settled = bytearray(b"\2") * self.tuples
            for place in failed:
                self._settled[place] = 1
            return
        for place in places:
            self._settled[place] = 2

    def takes_children(self, place: int) -> bool:
        """Whether a tuple's ack can still cover what is emitted under it."""
        return self._settled is None or self._settled[place] != 2


class AckedRows(NamedTuple):
    """These rows of a batch, or all but the `failed` ones if `places` is None: the usual case lists no rows."""

    batch: TrackedBatch
    places: Sequence[int] | None = None
    failed: Sequence[int] = ()


def tracked_batch(head: SegmentHead, task_id: int) -> TrackedBatch | None:
    """The batch of a TUPLES segment; None if the segment is not tracked.

    Raises:
        RemoteProtocolError: when its optional fields do not fit each other.
    """
    options = head.options
    if OptionTag.BATCH_KEY not in options:
        return None
    rows = 1 if OptionTag.UNIT in options and head.rows else head.rows
    batch = TrackedBatch(task_id, rows, int.from_bytes(options[OptionTag.BATCH_KEY], "little"), head.rows)
    batch.numbers = options.get(OptionTag.ROW_NUMBERS)
    batch.root_rows = options.get(OptionTag.ROOT_ROWS)
    fits = len(options[OptionTag.BATCH_KEY]) == _SIZE
    if OptionTag.ROOT_BASE in options:
        batch.root_base = int.from_bytes(options[OptionTag.ROOT_BASE], "little")
        fits = fits and len(options[OptionTag.ROOT_BASE]) == _SIZE and batch.root_rows is None
    elif OptionTag.ROOTS in options:
        batch.roots = options[OptionTag.ROOTS]
        fits = fits and len(batch.roots) == (_SIZE * rows if batch.root_rows is None else len(batch.root_rows))
    else:
        fits = False
    fits = fits and (batch.numbers is None or len(batch.numbers) == _SIZE * rows)
    if not fits or (batch.root_rows is not None and not _ascend(batch.root_rows, rows)):
        msg = f"tracked segment of task {head.source_task}: its roots and numbers do not fit its {head.rows} rows"
        raise RemoteProtocolError(msg)
    return batch


def _ascend(root_rows: memoryview, rows: int) -> bool:
    """Whether these are rows of the batch, in order."""
    if len(root_rows) % _SIZE:
        return False
    places = struct.unpack(f"<{len(root_rows) // _SIZE}q", root_rows)
    return not places or (places[0] >= 0 and places[-1] < rows and list(places) == sorted(places))
