"""A received batch whose tuples must be acked: their roots, their keys, and which of them are settled. Pure.

It lives as long as a tuple of it does. While it is in work its tuples do not name it: a pooled tuple knows its place
(`Tuple._index`) and the batch is the present one; a tuple that the user keeps is given its batch when the work is over.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from heron.errors import RemoteProtocolError
from heron.ipc.edge_key import U64, edge_keys, edge_keys_of_range
from heron.ipc.frame import OptionTag, SegmentHead

__all__ = ["InBatch", "tracked_batch"]

Places = NDArray[np.int64]


class InBatch:
    """The roots and keys of a batch's rows.

    Row n has the root ``root_base + number``, or `roots[n]`, or, where `root_rows` is given, those `roots[k]` with
    ``root_rows[k] == n``: none, one or several.
    """

    __slots__ = ("_children", "_edges", "_numbers", "_settled", "batch_key", "root_base", "root_rows", "roots", "rows", "task_id")

    def __init__(self, task_id: int, rows: int, batch_key: int, numbers: U64 | None) -> None:
        self.task_id = task_id
        self.rows = rows
        self.batch_key = batch_key
        self.root_base: int | None = None
        self.roots: U64 | None = None
        self.root_rows: Places | None = None
        self._numbers = numbers
        self._edges: U64 | None = None
        self._children: U64 | None = None
        self._settled: bytearray | None = None

    def is_range(self) -> bool:
        """Whether it is one range of roots with nothing emitted under it, so that an ack of all is one record."""
        return self.root_base is not None and self._numbers is None and self._children is None

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

    def add_children(self, places: Places, keys: U64) -> None:
        """Copies with these keys were emitted under these tuples."""
        if self._children is None:
            self._children = np.zeros(self.rows, dtype=np.uint64)
        np.bitwise_xor.at(self._children, places, keys)

    def pairs(self, places: Places | None) -> tuple[U64, U64]:
        """``(roots, xors)`` of these tuples (all: None), as an ack reports them."""
        if self._edges is None:
            if self._numbers is None:
                self._edges = edge_keys_of_range(self.batch_key, self.rows, self.task_id)
            else:
                self._edges = edge_keys(self.batch_key, self._numbers, self.task_id)
        xors = self._edges if self._children is None else self._edges ^ self._children
        if self.root_rows is not None:
            return self._ragged(places, xors)
        roots = self.roots_by_row()
        return (roots, xors) if places is None else (roots[places], xors[places])

    def roots_by_row(self) -> U64:
        """The root of each row, where each has one."""
        if self.roots is None:
            base = np.uint64(self.root_base or 0)
            numbers = np.arange(self.rows, dtype=np.uint64) if self._numbers is None else self._numbers
            self.roots = numbers + base
        return self.roots

    def roots_of(self, place: int) -> list[int]:
        """The roots of one row."""
        if self.root_rows is None:
            return [int(self.roots_by_row()[place])]
        assert self.roots is not None  # noqa: S101  # given together
        return [int(root) for root in self.roots[self.root_rows == place]]

    def _ragged(self, places: Places | None, xors: U64) -> tuple[U64, U64]:
        assert self.roots is not None and self.root_rows is not None  # noqa: S101, PT018  # as the caller has seen
        roots, rows = self.roots, self.root_rows
        if places is not None:
            wanted = np.zeros(self.rows, dtype=np.bool_)
            wanted[places] = True
            chosen = wanted[rows]
            roots, rows = roots[chosen], rows[chosen]
        return roots, xors[rows]


def tracked_batch(data: memoryview, head: SegmentHead, task_id: int) -> InBatch | None:
    """The batch of a TUPLES segment, or None when nobody waits for its acks.

    Raises:
        RemoteProtocolError: when its optional fields do not fit each other.
    """
    options = head.options
    if OptionTag.BATCH_KEY not in options:
        return None
    numbers = _numbers(options.get(OptionTag.ROW_NUMBERS), head.rows)
    batch = InBatch(task_id, head.rows, _number(options[OptionTag.BATCH_KEY]), numbers)
    if OptionTag.ROOT_BASE in options:
        batch.root_base = _number(options[OptionTag.ROOT_BASE])
        return batch
    root_rows = options.get(OptionTag.ROOT_ROWS)
    count = head.rows if root_rows is None else len(root_rows) // 8
    roots = _numbers(options.get(OptionTag.ROOTS), count)
    if roots is None:
        msg = f"tracked segment of task {head.source_task} has no roots"
        raise RemoteProtocolError(msg)
    batch.roots = roots
    if root_rows is not None:
        batch.root_rows = np.frombuffer(root_rows, "<i8")
        if count and not 0 <= int(batch.root_rows.min()) <= int(batch.root_rows.max()) < head.rows:
            msg = f"tracked segment of task {head.source_task} has roots for rows that it does not have"
            raise RemoteProtocolError(msg)
    return batch


def _number(data: memoryview) -> int:
    return int.from_bytes(data, "little")


def _numbers(data: memoryview | None, count: int) -> U64 | None:
    if data is None:
        return None
    if len(data) != 8 * count:
        msg = f"optional field of {len(data)} bytes where {count} numbers of 8 bytes were due"
        raise RemoteProtocolError(msg)
    return np.frombuffer(data, "<u8")
