"""What an author emits as columns, as a record batch of the stream's fields."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, cast

import numpy as np
import pyarrow as pa

from heron.api.columns import Columns
from heron.author_text import class_name, error_text
from heron.errors import EmitError

__all__ = ["batch_of"]

_DEEPEST = 64  # far more than types of columns have, and far less than fills the stack
_VIEWS: tuple[type[object], ...] = (type({}.keys()), type({}.values()), type({}.items()))
_NESTED: tuple[type[object], ...] = (list, tuple, set, frozenset, deque, dict, *_VIEWS, np.ndarray)
"""What Arrow follows inside a column."""


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
    if isinstance(values, Iterable) and getattr(values, "dtype", np.object_) == np.object_:
        _check_depth(values)
    try:
        return pa.array(values)
    except pa.ArrowException:  # its text has a value
        kinds = ", ".join(sorted(set(map(class_name, values)))) if isinstance(values, Iterable) else class_name(values)
        msg = f"column {name!r} has values of {kinds}, which Arrow has no common type for"
        raise TypeError(msg) from None


def _check_depth(values: Iterable[object]) -> None:
    """Refuse values that contain themselves: Arrow follows them until the process has no stack left.

    Level by level, and each container of a level once, because a container may hold another one many times.
    """
    held = values
    for _ in range(_DEEPEST):
        nested = {each for each in set(map(type, held)) if issubclass(each, _NESTED)}
        if not nested:
            return
        level = {id(each): each for each in held if type(each) in nested}
        held = list(chain.from_iterable(map(_entries, level.values())))
    msg = f"it contains itself, or is nested in more than {_DEEPEST} values; make it flatter"
    raise ValueError(msg)


def _entries(container: object) -> Iterable[object]:
    """What Arrow may follow in a container."""
    if isinstance(container, np.ndarray) and container.dtype != np.object_:
        return ()
    return cast("Iterable[object]", container.values() if isinstance(container, dict) else container)


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)
    combined = column.unify_dictionaries().combine_chunks()
    return combined.combine_chunks() if isinstance(combined, pa.ChunkedArray) else combined


def _listed(names: Sequence[str]) -> str:
    return f"({', '.join(names)})"
