"""Python values to arrays and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import pyarrow as pa

from heron.author_text import class_name
from heron.errors import SerializationError

__all__ = ["from_values", "has_exact_type", "to_values", "values_of"]

_EXACT: Final[Mapping[type, pa.DataType]] = {
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
    bytes: pa.binary(),
}


def has_exact_type(column: Sequence[object]) -> bool:
    """Return whether Arrow gives these values back unchanged: None, and one of bool, int, float, str and bytes."""
    kinds = set(map(type, column)) - {type(None)}
    return not kinds or (len(kinds) == 1 and kinds.pop() in _EXACT)


def from_values(columns: Sequence[Sequence[object]], fields: Sequence[str], like: pa.Schema | None) -> list[pa.Array]:
    """Return one array for each field.

    Raises:
        SerializationError: see `heron.spi.column_serializer.ColumnSerializer.from_columns`.
    """
    wanted = [None] * len(columns) if like is None else [None if pa.types.is_null(t) else t for t in like.types]
    return [_array(name, values, kind) for name, values, kind in zip(fields, columns, wanted, strict=True)]


def to_values(batch: pa.RecordBatch) -> list[Sequence[object]]:
    """Return the values of each column.

    Raises:
        SerializationError: when Python has no value for one of them; names the field and the type.
    """
    columns: list[Sequence[object]] = []
    for field, column in zip(batch.schema, batch.columns, strict=True):
        try:
            columns.append(values_of(column))
        except (pa.ArrowException, ValueError, OverflowError):  # its text may have the value
            msg = f"field {field.name!r} of type {field.type} has a value that Python does not have"
            raise SerializationError(msg) from None
    return columns


def values_of(array: pa.Array) -> list[object]:
    """Return the values of an array as Python objects; NumPy converts numbers in a tenth of Arrow's time."""
    if isinstance(array, pa.DictionaryArray) and not array.dictionary.null_count:
        keys = values_of(array.dictionary)
        if not array.null_count:
            return [keys[code] for code in array.indices.to_numpy().tolist()]
        return [None if code is None else keys[code] for code in array.indices.to_pylist()]
    if not array.null_count and (pa.types.is_integer(array.type) or array.type in (pa.float32(), pa.float64())):
        found: list[object] = array.to_numpy().tolist()
        return found
    if isinstance(array.type, pa.TimestampType | pa.DurationType) and array.type.unit == "ns":
        array = array.cast(_in_us(array.type))  # where pandas is installed, Arrow would give its types instead
    values: list[object] = array.to_pylist()
    return values


def _in_us(kind: pa.TimestampType | pa.DurationType) -> pa.DataType:
    return pa.timestamp("us", kind.tz) if isinstance(kind, pa.TimestampType) else pa.duration("us")


def _array(field: str, values: Sequence[object], wanted: pa.DataType | None) -> pa.Array:
    try:
        array = pa.array(values, wanted)
        if wanted is not None or not isinstance(array, pa.ChunkedArray):
            return array
        return array.combine_chunks()
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise _misfit(field, values, wanted, error) from None  # the text of `error` has the value


def _misfit(field: str, values: Sequence[object], wanted: pa.DataType | None, error: Exception) -> SerializationError:
    for value in values:
        try:
            found = pa.array([value], wanted)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            kind = "any type of Arrow" if wanted is None else f"{wanted}, the type of the first batch"
            return SerializationError(f"field {field!r}: a value of type {class_name(value)} does not fit {kind}")
        wanted = wanted or (None if pa.types.is_null(found.type) else found.type)
    return SerializationError(f"field {field!r}: its values are no column of Arrow ({class_name(error)})")
