"""The roots and keys of a received batch as arrays, for acks of single tuples and for what is anchored to them.

Needs numpy, so it is loaded when a task first needs it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import cast

import numpy as np
from numpy.typing import NDArray

from heron.instance.acks.tracked_batch import AckedRows, TrackedBatch
from heron.ipc.frames.tracking import Cause
from heron.ipc.frames.tracking_arrays import (
    U64,
    acks,
    edge_keys,
    edge_keys_of_range,
    fails,
    row_numbers,
    words_of,
)

__all__ = ["BatchAcks", "BatchArrays", "Rows", "arrays_of", "row_places"]

Rows = NDArray[np.int64]


class BatchAcks:
    """Acks and fails of places of received batches. It has no state."""

    def ack_segments(self, acked: list[AckedRows]) -> list[bytes]:
        """Acks of these rows of these batches."""
        pairs = [arrays_of(each.batch).pairs(_acked_places(each)) for each in acked]
        return list(
            acks(*_joined(np.concatenate([each for each, _ in pairs]), np.concatenate([each for _, each in pairs])))
        )

    def fail_segments(
        self, failed: list[tuple[TrackedBatch, list[int]]], why: Sequence[Cause] | None = None
    ) -> list[bytes]:
        """Fails of these places of these batches, behind `why` each place fails, in this order, if that is known."""
        parts = [_failed_roots(*each) for each in failed]
        roots = [root for of_batch, _ in parts for root in of_batch]
        if why is not None and any(batch.root_rows is not None for batch, _ in failed):  # none or several for a place
            starts = accumulate((len(places) for _, places in failed), initial=0)
            why = [
                why[start + place] for start, (_, of_batch) in zip(starts, parts, strict=False) for place in of_batch
            ]
        return list(fails(roots, why))


class BatchArrays:
    """The roots and keys of a received batch as arrays, and the keys of what was emitted under each of its tuples."""

    __slots__ = ("_children", "_edges", "root_rows", "roots")

    def __init__(self, batch: TrackedBatch) -> None:
        numbers = None if batch.numbers is None else words_of(batch.numbers)
        if numbers is None:
            self._edges = edge_keys_of_range(batch.batch_key, batch.rows, batch.task_id)
        else:
            self._edges = edge_keys(batch.batch_key, numbers, batch.task_id)
        self._children: U64 | None = None
        self.root_rows: Rows | None = None
        if batch.root_base is not None:
            self.roots: U64 = (row_numbers(batch.rows) if numbers is None else numbers) + np.uint64(batch.root_base)
            return
        self.roots = words_of(batch.roots or b"")
        if batch.root_rows is not None:
            self.root_rows = words_of(batch.root_rows).view(np.int64)

    def add_children(self, places: Rows, keys: U64) -> None:
        """Adds the keys of copies that were emitted under these tuples."""
        if self._children is None:
            self._children = np.zeros(len(self._edges), dtype=np.uint64)
        np.bitwise_xor.at(self._children, places, keys)

    def pairs(self, places: Rows | None) -> tuple[U64, U64]:
        """``(roots, xors)`` of these tuples (None: all), as an ack reports them."""
        xors = self._edges if self._children is None else self._edges ^ self._children
        if self.root_rows is None:
            return (self.roots, xors) if places is None else (self.roots[places], xors[places])
        roots, rows = self.roots, self.root_rows
        if places is not None:
            wanted = np.zeros(len(xors), dtype=np.bool_)
            wanted[places] = True
            chosen = wanted[rows]
            roots, rows = roots[chosen], rows[chosen]
        return roots, xors[rows]

    def roots_of(self, places: Rows) -> tuple[U64, Rows]:
        """``(roots, which of the places)``: every root of each place."""
        if self.root_rows is None:
            return self.roots[places], np.arange(len(places), dtype=np.int64)
        # root_rows ascend, so the roots of one row are adjacent
        first = np.searchsorted(self.root_rows, places, "left")
        count = np.searchsorted(self.root_rows, places, "right") - first
        which = np.repeat(np.arange(len(places), dtype=np.int64), count)
        within = np.arange(len(which), dtype=np.int64) - np.repeat(np.cumsum(count) - count, count)
        return self.roots[first[which] + within], which


def arrays_of(batch: TrackedBatch) -> BatchArrays:
    """The arrays of a batch, which are made once."""
    if batch.arrays is None:
        batch.arrays = BatchArrays(batch)
    return cast("BatchArrays", batch.arrays)


def row_places(numbers: Sequence[int]) -> Rows:
    """The numbers as an array, in half the time that numpy takes, because it checks the type of each element."""
    return np.frombuffer(struct.pack(f"<{len(numbers)}q", *numbers), "<i8")


def _failed_roots(batch: TrackedBatch, places: list[int]) -> tuple[list[int], Iterable[int]]:
    """``(roots, which of the places)``. An ack of the other rows may be a range, so it makes no arrays of a range."""
    if (base := batch.root_base) is not None and batch.is_range():
        return [base + place for place in places], range(len(places))
    roots, which = arrays_of(batch).roots_of(row_places(places))
    return roots.tolist(), which.tolist()


def _acked_places(acked: AckedRows) -> Rows | None:
    if acked.places is not None:
        return row_places(acked.places)
    if not acked.failed:
        return None
    left = np.ones(acked.batch.rows, dtype=np.bool_)
    left[row_places(acked.failed)] = False
    return np.flatnonzero(left)


def _joined(roots: U64, xors: U64) -> tuple[U64, U64]:
    """Joins adjacent entries of one root: the words of one line that go to the same task are adjacent."""
    differs = np.flatnonzero(roots[1:] != roots[:-1])
    if len(differs) + 1 >= len(roots):
        return roots, xors
    starts = np.concatenate(([0], differs + 1))
    return roots[starts], np.bitwise_xor.reduceat(xors, starts)
