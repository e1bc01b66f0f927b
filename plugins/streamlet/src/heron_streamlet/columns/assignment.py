"""Assigns the rows of batches to windows of event time: `heron_streamlet.window_assignment` for all rows at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from heron_streamlet.columns.aggregates import ColumnFold
from heron_streamlet.columns.times import Times
from heron_streamlet.window import SlidingWindow

__all__ = ["ColumnAssignment", "missed_rows"]

Rows = npt.NDArray[np.bool_]


class ColumnAssignment:
    """Groups the rows of a batch by key and window; `add(key, start, accumulator)` gets the accumulator of each group.

    Windows that begin at the same multiple of the slide have the same rows but for late ones. So a batch without late
    rows is grouped once, whatever the number of windows that a row belongs to.
    """

    def __init__(
        self,
        window: SlidingWindow,
        keys: Sequence[str],
        fold: ColumnFold,
        add: Callable[[object, int, object], object],
    ) -> None:
        self._size_us, self._slide_us = window.size_us, window.slide_us
        self._span_us = window.size_us + window.allowed_lateness_us
        self._overlaps = range(-(-window.size_us // window.slide_us))
        self._keys = keys
        self._fold = fold
        self._add = add

    def add(self, batch: pa.RecordBatch, times: Times, bounds: Times) -> tuple[int, Rows | None]:
        """Assigns the rows; returns how many windows they missed, and which rows missed one or more."""
        if not batch.num_rows:
            return 0, None
        last = times - times % self._slide_us
        earliest = last - (len(self._overlaps) - 1) * self._slide_us
        if self._size_us % self._slide_us == 0 and not (earliest + self._span_us <= bounds).any():
            for key, start_us, accumulator in self._fold.groups(batch, self._keys, last):
                for number in self._overlaps:
                    self._add(key, start_us - number * self._slide_us, accumulator)
            return 0, None
        missed, windows = np.zeros(len(times), np.bool_), 0
        for number in self._overlaps:
            starts = last - number * self._slide_us
            inside = starts > times - self._size_us
            late = inside & (starts + self._span_us <= bounds)
            missed |= late
            windows += int(late.sum())
            kept = inside & ~late
            if kept.any():
                rows = batch.filter(pa.array(kept))
                for key, start_us, accumulator in self._fold.groups(rows, self._keys, starts[kept]):
                    self._add(key, start_us, accumulator)
        return windows, missed if windows else None


def missed_rows(
    batch: pa.RecordBatch, times: Times, bounds: Times, missed: Rows
) -> tuple[pa.RecordBatch, Times, Times]:
    """The rows that `ColumnAssignment.add` found to be late."""
    return batch.filter(pa.array(missed)), times[missed], bounds[missed]
