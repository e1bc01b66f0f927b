"""Makes record batches of what authors give."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from heron.api.columns import check_depth
from heron.author_text import short_text
from heron.errors import TopologyError, UserCodeError

__all__ = ["as_array", "as_batch", "as_schema", "column_of", "without_rest"]

_SPARE = 2  # buffers are somewhat larger than what is in them


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
        return pa.RecordBatch.from_pydict({name: as_array(column) for name, column in value.items()})
    msg = f"{what} {type(value).__name__}, not a RecordBatch, a Table, or a mapping of names to arrays"
    raise UserCodeError(msg)


def as_schema(value: object, method: str) -> pa.Schema:
    """A schema of at least one field, of what an author gives to a method: a schema, or a mapping of names to types.

    Raises:
        TopologyError: when it is neither, has no field, or has a name twice.
    """
    try:
        made = pa.schema(value)
    except (TypeError, AttributeError, ValueError) as error:
        what = "is neither a pyarrow.Schema nor a mapping of names to Arrow types"
        msg = f"{method}: {short_text(value, 200)} {what}: {error}"
        raise TopologyError(msg) from error
    if not made.names or len(set(made.names)) != len(made.names):
        msg = f"{method}: the schema has no field, or one name twice: {', '.join(made.names)}"
        raise TopologyError(msg)
    return made


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


def without_rest(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch without the rows of which it is a slice: pickle takes all buffers, and they would travel too."""
    if batch.get_total_buffer_size() <= _SPARE * batch.nbytes:
        return batch
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    alone: pa.RecordBatch = pa.ipc.open_stream(sink.getvalue()).read_next_batch()
    return alone


def as_array(column: Any) -> Any:  # noqa: ANN401  # an array of any library, or values
    """An array without chunks, of what an author's function gives.

    Raises:
        ValueError: when the values contain themselves.
    """
    if isinstance(column, pa.ChunkedArray):
        return column.combine_chunks()
    if isinstance(column, pa.Array):
        return column
    if isinstance(column, Iterator):
        column = list(column)
    if isinstance(column, Iterable):
        check_depth(column)
    return pa.array(column)
