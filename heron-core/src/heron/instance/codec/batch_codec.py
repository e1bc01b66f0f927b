"""Rows to payload bytes and back: a batch is encoded as a list of columns, because columns decode fastest (measured).

A row is a tuple of values, or the bare value where the stream has one field.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from heron.author_text import class_name, named_error
from heron.errors import LimitExceededError, SerializationError
from heron.instance.codec.serializers import PICKLE
from heron.ipc.frames.frame import MOST_ROWS
from heron.spi.serializer import Serializer

__all__ = ["decode_columns", "decode_values", "encode_rows", "rows_of"]

Rejected = Callable[[object, Exception], None]


def encode_rows(
    rows: list[object],
    fields: Sequence[str],
    serializer: Serializer,
    *,
    batch_bytes: int,
    tuple_max_bytes: int,
    rejected: Rejected,
) -> Iterator[tuple[list[object], bytes]]:
    """Yields ``(rows, payload)`` in order: normally one pair, several where one payload would be too large.

    A row that cannot be encoded, or whose payload alone exceeds `tuple_max_bytes`, is left out and passed to `rejected`
    with the reason.
    """
    try:
        payload = serializer.encode(rows_to_columns(rows, len(fields)))
    except Exception as error:
        if len(rows) == 1:
            rejected(rows[0], _unencodable(rows[0], fields, serializer, error))
            return
        payload = b""
    if payload and len(rows) == 1 and len(payload) > tuple_max_bytes:
        rejected(rows[0], _too_large(len(payload), tuple_max_bytes))
        return
    if payload and (len(rows) == 1 or len(payload) <= min(2 * batch_bytes, tuple_max_bytes)) and len(rows) <= MOST_ROWS:
        yield rows, payload
        return
    middle = len(rows) // 2
    for half in (rows[:middle], rows[middle:]):
        yield from encode_rows(
            half, fields, serializer, batch_bytes=batch_bytes, tuple_max_bytes=tuple_max_bytes, rejected=rejected
        )


def rows_to_columns(rows: list[object], arity: int) -> list[Sequence[object]]:
    """The rows as one sequence per field; an empty list for a stream without fields."""
    if arity == 1:
        return [rows]
    return list(zip(*rows, strict=True))


def rows_of(columns: list[Sequence[object]], rows: int) -> list[tuple[object, ...]]:
    """The values of each row; an empty tuple for each row of a stream without fields."""
    return list(zip(*columns, strict=True)) if columns else [()] * rows


def decode_columns(payload: bytes | memoryview, rows: int, serializer: Serializer = PICKLE) -> list[Sequence[object]]:
    """The columns of a payload.

    Raises:
        SerializationError: when it does not decode, or has another number of rows: the sender runs other code.
    """
    try:
        columns = serializer.decode(payload)
    except Exception as error:
        msg = (
            f"a batch of {rows} tuples does not decode ({type(serializer).__name__}): {named_error(error)}; "
            "define the classes of values at the top level of a module that every component can import"
        )
        raise SerializationError(msg) from error
    if not _is_batch(columns, rows):
        msg = f"a batch of {rows} tuples has columns of another length"
        raise SerializationError(msg)
    return columns


def decode_values(payload: bytes | memoryview, rows: int, serializer: Serializer) -> list[Sequence[object]]:
    """The columns of a payload that `decode_columns` refused; each value that does not decode is an `UndecodableValue`.

    Raises:
        SerializationError: when its values cannot be decoded one by one.
    """
    try:
        columns = serializer.decode_each(payload)
    except Exception as error:
        msg = f"a batch of {rows} tuples does not decode value by value ({type(serializer).__name__}): {error}"
        raise SerializationError(msg) from error
    if not _is_batch(columns, rows):
        msg = f"a batch of {rows} tuples has columns of another length"
        raise SerializationError(msg)
    return columns


def _is_batch(columns: object, rows: int) -> bool:
    """Checks the shape: a serializer may return anything for bytes that another serializer wrote."""
    return isinstance(columns, list) and all(
        isinstance(column, list | tuple) and len(column) == rows for column in columns
    )


def _unencodable(row: object, fields: Sequence[str], serializer: Serializer, error: Exception) -> SerializationError:
    """An error that names the first field whose value does not encode alone."""
    values: Sequence[object] = (row,) if len(fields) == 1 else row  # type: ignore[assignment]  # a tuple of values
    for name, value in zip(fields, values, strict=True):
        try:
            serializer.encode([(value,)])
        except Exception as reason:
            return SerializationError(
                f"field {name!r}: a value of type {class_name(value)} cannot be encoded "
                f"({type(serializer).__name__}): {named_error(reason)}; emit plain data instead"
            )
    return SerializationError(f"tuple cannot be encoded ({type(serializer).__name__}): {named_error(error)}")


def _too_large(size_bytes: int, limit_bytes: int) -> LimitExceededError:
    return LimitExceededError(
        f"tuple of {size_bytes} bytes exceeds heron.tuple.max.bytes, {limit_bytes} bytes; "
        "emit a reference to the data, or raise the limit in the profile's engine section"
    )
