"""Assigns the rows of batches to windows of event time: `WindowAssignment` for all rows at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from heron.errors import HeronError
from heron_streamlet.arrow.aggregates import ColumnFold
from heron_streamlet.arrow.combiner import ColumnCombiner
from heron_streamlet.arrow.times import Times
from heron_streamlet.failures import in_one
from heron_streamlet.windowing.window import SlidingWindow

__all__ = ["ColumnAssignment", "distances_us", "missed_rows"]

Rows = npt.NDArray[np.bool_]


class ColumnAssignment:
    """Gives the rows of a batch to the combiner of their windows.

    Windows that begin at the same multiple of the slide have the same rows but for late ones. So a batch without late
    rows is grouped once, whatever the number of windows that a row belongs to.

    With `holds`, accumulators wait in the combiner; otherwise those of a batch leave at once.
    """

    def __init__(
        self, window: SlidingWindow, keys: Sequence[str], fold: ColumnFold, combiner: ColumnCombiner, *, holds: bool
    ) -> None:
        self._size_us, self._slide_us = window.size_us, window.slide_us
        self._span_us = window.size_us + window.allowed_lateness_us
        self._distances = distances_us(window)
        self._keys = keys
        self._fold = fold
        self._combiner = combiner
        self._holds = holds

    def add(self, batch: pa.RecordBatch, times: Times, bounds: Times) -> tuple[int, Rows | None]:
        """Assigns the rows; returns how many windows they missed, and which rows missed one or more.

        Raises:
            OperatorError: when accumulators that leave at once fail.
        """
        if not batch.num_rows:
            return 0, None
        last = times - times % self._slide_us
        found: tuple[int, Rows | None] = (0, None)
        if self._size_us % self._slide_us == 0 and not (last - self._distances[-1] + self._span_us <= bounds).any():
            self._combine(batch, last, spread=True)
        else:
            found = self._add_each(batch, times, bounds, last)
        if not self._holds and (failed := self._combiner.flush()):
            raise in_one(failed)
        return found

    def _add_each(self, batch: pa.RecordBatch, times: Times, bounds: Times, last: Times) -> tuple[int, Rows | None]:
        """Adds the rows to each of their windows that they did not miss."""
        missed, windows = np.zeros(len(times), np.bool_), 0
        for distance_us in self._distances:
            starts = last - distance_us
            inside = starts > times - self._size_us
            late = inside & (starts + self._span_us <= bounds)
            missed |= late
            windows += int(late.sum())
            kept = inside & ~late
            if kept.any():
                self._combine(batch.filter(pa.array(kept)), starts[kept], spread=False)
        return windows, missed if windows else None

    def _combine(self, batch: pa.RecordBatch, starts: Times, *, spread: bool) -> None:
        """Gives rows to the combiner. If a batch lacks a column of the aggregates, its windows fail."""
        try:
            rows = self._fold.rows(batch, self._keys, starts)
        except HeronError as error:
            self._combiner.fail(pa.table(self._fold.places(batch, self._keys, starts)), error, spread=spread)
            return
        self._combiner.add(rows, spread=spread)


def distances_us(window: SlidingWindow) -> range:
    """How much earlier than the last window of a row its windows begin."""
    return range(0, window.size_us, window.slide_us)


def missed_rows(
    batch: pa.RecordBatch, times: Times, bounds: Times, missed: Rows
) -> tuple[pa.RecordBatch, Times, Times]:
    """The rows that `ColumnAssignment.add` found to be late."""
    return batch.filter(pa.array(missed)), times[missed], bounds[missed]
