"""Makes record batches of what authors give."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from heron.errors import UserCodeError

__all__ = ["as_batch", "column_of"]


def as_batch(value: object, what: str) -> pa.RecordBatch:
    """A record batch with the rows of `value`: a batch, a table, or a mapping of names to arrays of one length.

    Raises:
        UserCodeError: when it is none of these; `what` says who gave it.
    """
    if isinstance(value, pa.RecordBatch):
        return value
    if isinstance(value, pa.Table):
        found: list[pa.RecordBatch] = value.combine_chunks().to_batches()
        return found[0] if found else pa.RecordBatch.from_pylist([], schema=value.schema)
    if isinstance(value, Mapping):
        return pa.RecordBatch.from_pydict({name: _contiguous(column) for name, column in value.items()})
    msg = f"{what} {type(value).__name__}, not a RecordBatch, a Table, or a mapping of names to arrays"
    raise UserCodeError(msg)


def column_of(batch: pa.RecordBatch, name: str) -> pa.Array:
    """A column of a batch.

    Raises:
        UserCodeError: when the batch has no such column, or has it twice.
    """
    index: int = batch.schema.get_field_index(name)
    if index < 0:
        msg = f"no single column {name!r} in the batch; its columns are {', '.join(batch.schema.names) or 'none'}"
        raise UserCodeError(msg)
    return batch.column(index)


def _contiguous(column: Any) -> pa.Array:  # noqa: ANN401  # arrays of any library
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
