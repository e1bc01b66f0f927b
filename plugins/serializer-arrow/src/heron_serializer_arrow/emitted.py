"""What an author emits as columns, as a record batch of the stream's fields."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from heron.api.columns import Columns, check_depth
from heron.author_text import class_name, error_text
from heron.errors import EmitError

__all__ = ["batch_of"]


def batch_of(columns: Columns, fields: Sequence[str]) -> pa.RecordBatch:
    """Return the columns as one batch, in the order of the fields.

    Raises:
        EmitError: see `heron.spi.column_serializer.ColumnSerializer.batch_of`.
    """
    try:
        batch = _as_batch(columns)
    except Exception as error:  # also of methods of the author's values
        msg = f"a {class_name(columns)} cannot be emitted as columns: {error_text(error)}"
        raise EmitError(msg) from error
    names = batch.schema.names
    if names == list(fields):
        return batch
    if sorted(names) != sorted(fields):
        msg = f"the columns {_listed(names)} are not the declared fields {_listed(fields)}; name each field once"
        raise EmitError(msg)
    return batch.select(list(fields))


def _as_batch(columns: object) -> pa.RecordBatch:
    if isinstance(columns, pa.RecordBatch):
        return columns
    if isinstance(columns, pa.Table):
        return _one_batch(columns)
    if hasattr(columns, "__arrow_c_stream__"):
        return _one_batch(_imported(pa.table, columns))
    if hasattr(columns, "__arrow_c_array__"):
        return _imported(pa.record_batch, columns)
    if isinstance(columns, Mapping):
        arrays = [_as_array(name, each) for name, each in columns.items()]
        return pa.RecordBatch.from_arrays(arrays, names=list(columns))
    msg = (
        "give a pyarrow RecordBatch or Table, a data frame with Arrow's C interface (pandas, Polars), or a mapping of "
        "field names to arrays"
    )
    raise TypeError(msg)


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    arrays = [_one_array(column) for column in table.columns]
    return pa.RecordBatch.from_arrays(arrays, schema=table.schema.remove_metadata())


def _imported(convert: Callable[[object], Any], columns: object) -> Any:  # noqa: ANN401  # of pyarrow, which has no types
    try:
        return convert(columns)
    except pa.ArrowException as error:  # its text has a value
        msg = f"a column has values that Arrow has no common type for ({class_name(error)})"
        raise TypeError(msg) from None


def _as_array(name: object, values: object) -> pa.Array:
    if isinstance(values, pa.Array):
        return values
    if isinstance(values, pa.ChunkedArray):
        return _one_array(values)
    if isinstance(values, Iterator):
        values = list(values)
    if isinstance(values, Iterable):
        check_depth(values)
    try:
        return pa.array(values)
    except pa.ArrowException:  # its text has a value
        kinds = ", ".join(sorted(set(map(class_name, values)))) if isinstance(values, Iterable) else class_name(values)
        msg = f"column {name!r} has values of {kinds}, which Arrow has no common type for"
        raise TypeError(msg) from None


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)
    combined = column.unify_dictionaries().combine_chunks()
    return combined.combine_chunks() if isinstance(combined, pa.ChunkedArray) else combined


def _listed(names: Sequence[str]) -> str:
    return f"({', '.join(names)})"
