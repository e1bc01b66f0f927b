"""The operators on batches: a batch with the event times and bounds of its rows in, any number of elements out.

Times and bounds are arrays, or None where the stream has no event time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from heron.errors import UserCodeError
from heron_streamlet.arrow.batches import as_array, as_batch, column_of
from heron_streamlet.arrow.times import Times

__all__ = ["ColumnNamed", "FilterRows", "MapBatch", "Select", "SplitRows"]

Element = tuple[Any, Any, Any]
"""A batch or a row, its times and its bounds."""


@dataclass(frozen=True, slots=True)
class MapBatch:
    """Calls an author's function for each batch. Behind event time the number of rows must stay: rows have times."""

    function: Callable[[pa.RecordBatch], object]

    def __call__(self, batch: pa.RecordBatch, times: Times | None, bounds: Times | None) -> Sequence[Element]:
        """The batch that the function returns."""
        made = as_batch(self.function(batch), "map_columns: the function returned")
        if times is not None and made.num_rows != batch.num_rows:
            msg = (
                f"map_columns: the function returned {made.num_rows} rows for {batch.num_rows}; behind event_time the "
                "rows must stay: use filter_columns, or call event_time later"
            )
            raise UserCodeError(msg)
        return ((made, times, bounds),) if made.num_rows else ()


@dataclass(frozen=True, slots=True)
class FilterRows:
    """Keeps the rows for which an author's function gives true; null is not true."""

    function: Callable[[pa.RecordBatch], object]

    def __call__(self, batch: pa.RecordBatch, times: Times | None, bounds: Times | None) -> Sequence[Element]:
        """The rows that are left."""
        mask = as_array(self.function(batch))
        if mask.type != pa.bool_() or len(mask) != batch.num_rows:
            msg = (
                f"filter_columns: the function returned {len(mask)} values of the type {mask.type} for "
                f"{batch.num_rows} rows; give a true or false for each row"
            )
            raise UserCodeError(msg)
        left = batch.filter(mask)
        if not left.num_rows:
            return ()
        if times is None or bounds is None or left.num_rows == batch.num_rows:
            return ((left, times, bounds),)
        kept = mask.fill_null(False).to_numpy(zero_copy_only=False).astype(np.bool_)
        return ((left, times[kept], bounds[kept]),)


@dataclass(frozen=True, slots=True)
class Select:
    """Keeps some columns, in this order."""

    names: tuple[str, ...]

    def __call__(self, batch: pa.RecordBatch, times: Times | None, bounds: Times | None) -> Sequence[Element]:
        """The batch with these columns."""
        columns = [column_of(batch, name) for name in self.names]
        return ((pa.RecordBatch.from_arrays(columns, names=list(self.names)), times, bounds),)


@dataclass(frozen=True, slots=True)
class SplitRows:
    """Gives each row as a dict of its values by column."""

    def __call__(self, batch: pa.RecordBatch, times: Times | None, bounds: Times | None) -> Iterable[Element]:
        """The rows."""
        rows = batch.to_pylist()
        if times is None or bounds is None:
            return ((row, None, None) for row in rows)
        return zip(rows, times.tolist(), bounds.tolist(), strict=True)


@dataclass(frozen=True, slots=True)
class ColumnNamed:
    """The column with a name."""

    name: str

    def __call__(self, batch: pa.RecordBatch) -> pa.Array:
        """The column of a batch."""
        return column_of(batch, self.name)
