"""Gives what authors put the columns and types of a table, or says what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyarrow import types

from heron.author_text import class_name
from heron.errors import UserCodeError

__all__ = ["conformed", "row_of"]

# Types of one kind are converted if each value stays the same.
_KINDS: Sequence[Callable[[pa.DataType], bool]] = (
    types.is_integer,
    types.is_floating,
    types.is_decimal,
    types.is_date,
    lambda given: types.is_string(given) or types.is_large_string(given) or types.is_string_view(given),
    lambda given: types.is_binary(given) or types.is_large_binary(given) or types.is_binary_view(given),
    lambda given: types.is_timestamp(given) and given.tz is not None,
    lambda given: types.is_timestamp(given) and given.tz is None,
)


def conformed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The rows of a batch with the columns of `schema`; columns that the batch has not are null.

    Raises:
        UserCodeError: when the batch has another column, one of another kind, or null where the table has none.
    """
    _check_names(batch.schema.names, schema)
    if batch.schema.equals(schema):
        arrays: list[pa.Array] = batch.columns
    else:
        given = {name: batch.column(index) for index, name in enumerate(batch.schema.names)}
        arrays = [_column(given.get(field.name), field, batch.num_rows) for field in schema]
    for field, array in zip(schema, arrays, strict=True):
        if not field.nullable and array.null_count:
            msg = f"column {field.name!r} has a null, which the table does not take"
            raise UserCodeError(msg)
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def row_of(record: Mapping[str, Any], schema: pa.Schema) -> pa.RecordBatch:
    """A batch of one row of a mapping from names to values.

    Raises:
        UserCodeError: as `conformed`, or when a value is not of its column's type.
    """
    _check_names(list(record), schema)
    try:
        return conformed(pa.RecordBatch.from_pylist([record], schema=schema), schema)
    except (pa.ArrowException, OverflowError, TypeError) as error:
        raise UserCodeError(_wrong_value(record, schema, error)) from None  # its text has the value


def _check_names(names: Sequence[str], schema: pa.Schema) -> None:
    if len(set(names)) < len(names):
        msg = f"a column is there twice: {', '.join(names)}"
        raise UserCodeError(msg)
    for name in names:
        if name not in schema.names:
            msg = f"the table has no column {name!r}; it has {', '.join(schema.names)}"
            raise UserCodeError(msg)


def _column(array: pa.Array | None, field: pa.Field, rows: int) -> pa.Array:
    if array is None or types.is_null(array.type):
        return pa.nulls(rows, field.type)
    if types.is_dictionary(array.type):
        array = array.dictionary_decode()
    same = array.type == field.type or any(kind(array.type) and kind(field.type) for kind in _KINDS)
    if not same and not (types.is_nested(array.type) and types.is_nested(field.type)):
        msg = f"column {field.name!r} has the type {array.type}, but the table {field.type}"
        raise UserCodeError(msg)
    try:
        return array.cast(field.type)
    except pa.ArrowException:
        msg = f"column {field.name!r} of type {array.type} does not fit the table's {field.type}: a value would change"
        raise UserCodeError(msg) from None  # its text has the value


def _wrong_value(record: Mapping[str, Any], schema: pa.Schema, error: Exception) -> str:
    for name, value in record.items():
        field = schema.field(name)
        try:
            pa.array([value], field.type)
        except (pa.ArrowException, OverflowError, TypeError):
            return f"column {name!r} of type {field.type} does not take a value of type {class_name(value)}"
    return f"the record is not a row of the table ({class_name(error)})"
