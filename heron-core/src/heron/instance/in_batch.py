"""A received batch whose tuples must be acked: what is known of their roots, and which of them are settled. Pure.

It lives as long as a tuple of it does. While it is in work its tuples do not name it: a pooled tuple knows its place
(`Tuple._index`) and the batch is the present one; a tuple that the user keeps is given its batch when the work is over.
"""

from __future__ import annotations

from heron.errors import RemoteProtocolError
from heron.ipc.frame import OptionTag, SegmentHead

__all__ = ["InBatch", "tracked_batch"]

_SIZE = 8  # bytes of a root, key or number


class InBatch:
    """The roots of a batch's rows, as they were sent.

    Row n has the root ``root_base + number``, or ``roots[n]``, or, where `root_rows` is given, those ``roots[k]`` with
    ``root_rows[k] == n``: none, one or several. The key of a row derives from `batch_key` and its number: n, or
    ``numbers[n]``. `arrays` belongs to `heron.instance.array_tracking`.
    """

    __slots__ = (
        "_settled",
        "arrays",
        "batch_key",
        "numbers",
        "root_base",
        "root_rows",
        "roots",
        "rows",
        "task_id",
    )

    def __init__(self, task_id: int, rows: int, batch_key: int) -> None:
        self.task_id = task_id
        self.rows = rows
        self.batch_key = batch_key
        self.numbers: memoryview | None = None
        self.root_base: int | None = None
        self.roots: memoryview | None = None
        self.root_rows: memoryview | None = None
        self.arrays: object = None
        self._settled: bytearray | None = None

    def is_range(self) -> bool:
        """Whether it is one range of roots with nothing emitted under it, so that an ack of all is one record."""
        return self.root_base is not None and self.numbers is None and self.arrays is None

    def untouched(self) -> bool:
        """Whether none of its tuples is settled."""
        return self._settled is None

    def settle_all(self) -> None:
        """Every tuple is settled; after `untouched` was asked."""
        self._settled = bytearray(b"\1") * self.rows

    def settle(self, places: list[int]) -> list[int]:
        """Marks tuples as settled; returns those that were not before, each once."""
        marks = self._settled
        if marks is None:
            marks = self._settled = bytearray(self.rows)
        fresh = []
        for place in places:
            if not marks[place]:
                marks[place] = 1
                fresh.append(place)
        return fresh


def tracked_batch(head: SegmentHead, task_id: int) -> InBatch | None:
    """The batch of a TUPLES segment, or None when nobody waits for its acks.

    Raises:
        RemoteProtocolError: when its optional fields do not fit each other.
    """
    options = head.options
    if OptionTag.BATCH_KEY not in options:
        return None
    batch = InBatch(task_id, head.rows, int.from_bytes(options[OptionTag.BATCH_KEY], "little"))
    batch.numbers = options.get(OptionTag.ROW_NUMBERS)
    batch.root_rows = options.get(OptionTag.ROOT_ROWS)
    if OptionTag.ROOT_BASE in options:
        batch.root_base = int.from_bytes(options[OptionTag.ROOT_BASE], "little")
    elif OptionTag.ROOTS in options:
        batch.roots = options[OptionTag.ROOTS]
    fits = batch.root_base is not None or batch.roots is not None
    fits = fits and (batch.numbers is None or len(batch.numbers) == _SIZE * head.rows)
    if batch.roots is not None:
        fits = fits and len(batch.roots) == (_SIZE * head.rows if batch.root_rows is None else len(batch.root_rows))
    if not fits:
        msg = f"tracked segment of task {head.source_task}: its roots and numbers do not fit its {head.rows} rows"
        raise RemoteProtocolError(msg)
    return batch
