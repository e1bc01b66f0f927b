"""Rows to payload bytes and back: a batch is pickled as a list of columns, which is what decodes fastest (measured).

A row is a tuple of values, or the bare value where the stream has one field.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Iterator, Sequence

from heron.errors import LimitExceededError, SerializationError

__all__ = ["decode_columns", "encode_rows"]

_PROTOCOL = 5

Rejected = Callable[[object, Exception], None]


def encode_rows(
    rows: list[object], arity: int, *, batch_bytes: int, tuple_max_bytes: int, rejected: Rejected
) -> Iterator[tuple[list[object], bytes]]:
    """The rows as ``(rows, payload)``, in order; normally one, several where one would be too large.

    A row that cannot be pickled, or whose payload alone exceeds `tuple_max_bytes`, is given to `rejected` with the
    reason and left out.
    """
    try:
        payload = _pickled(rows_to_columns(rows, arity))
    except Exception as error:
        if len(rows) == 1:
            rejected(rows[0], _unpicklable(rows[0], arity, error))
            return
        payload = b""
    if payload and len(rows) == 1 and len(payload) > tuple_max_bytes:
        rejected(rows[0], _too_large(len(payload), tuple_max_bytes))
        return
    if payload and (len(rows) == 1 or len(payload) <= min(2 * batch_bytes, tuple_max_bytes)):
        yield rows, payload
        return
    middle = len(rows) // 2
    for half in (rows[:middle], rows[middle:]):
        yield from encode_rows(half, arity, batch_bytes=batch_bytes, tuple_max_bytes=tuple_max_bytes, rejected=rejected)


def _pickled(columns: list[Sequence[object]]) -> bytes:
    """Without the memo, which costs as much as all else together and makes one object of what was emitted twice.

    Only what contains itself needs the memo; the pickler says so.
    """
    buffer = io.BytesIO()
    pickler = pickle.Pickler(buffer, _PROTOCOL)
    pickler.fast = True
    try:
        pickler.dump(columns)
    except ValueError:  # "can't pickle cyclic objects"
        return pickle.dumps(columns, _PROTOCOL)
    return buffer.getvalue()


def rows_to_columns(rows: list[object], arity: int) -> list[Sequence[object]]:
    """The rows as one sequence per field: none for a stream without fields."""
    if arity == 1:
        return [rows]
    return list(zip(*rows, strict=True))


def decode_columns(payload: bytes | memoryview, rows: int) -> list[Sequence[object]]:
    """The columns of a payload.

    Raises:
        SerializationError: when it does not unpickle, or is not `rows` long: the sender runs other code.
    """
    try:
        columns = pickle.loads(payload)  # noqa: S301  # links carry only what the topology itself sends
    except Exception as error:
        msg = (
            f"a batch of {rows} tuples does not unpickle: {type(error).__name__}: {error}; "
            "define the class at the top level of a module that every component can import"
        )
        raise SerializationError(msg) from error
    if not isinstance(columns, list) or any(
        not isinstance(column, list | tuple) or len(column) != rows for column in columns
    ):
        msg = f"a batch announced as {rows} tuples has columns of other lengths"
        raise SerializationError(msg)
    return columns


def _unpicklable(row: object, arity: int, error: Exception) -> SerializationError:
    values = (row,) if arity == 1 else row
    kinds = ", ".join(type(value).__name__ for value in values)  # type: ignore[attr-defined]  # a tuple
    return SerializationError(
        f"tuple of types ({kinds}) cannot be pickled: {type(error).__name__}: {error}; emit plain data instead"
    )


def _too_large(size_bytes: int, limit_bytes: int) -> LimitExceededError:
    return LimitExceededError(
        f"tuple of {size_bytes} bytes exceeds heron.tuple.max.bytes, {limit_bytes} bytes; "
        "emit a reference to the data, or raise the limit in the profile's engine section"
    )
