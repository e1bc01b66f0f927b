"""Values that MessagePack has no type for, as extension types: what an application code means is pinned here for ever.

    1  tuple              a packed array
    2  int beyond 64 bit  hexadecimal digits, with a sign where it is negative
    3  Decimal            its text, as ``1.10``
    4  date               ISO 8601, ``2024-02-29``
    5  datetime           ISO 8601 with microseconds, and with the offset from UTC where it has one
    6  UUID               its 16 bytes
    7  set, 8  frozenset  a packed array

All text is ASCII. Exactly these types: an instance of a subclass would arrive as something else, so it is refused.
"""

from __future__ import annotations

import datetime
import decimal
import uuid
from collections.abc import Callable, Mapping
from typing import cast

import msgpack

from heron.errors import SerializationError

__all__ = ["pack", "to_extension", "unpack"]

_TUPLE, _LARGE_INT, _DECIMAL, _DATE, _DATETIME, _UUID, _SET, _FROZENSET = range(1, 9)


def pack(value: object) -> bytes:
    """The bytes of a value; whatever is not exactly of a type of MessagePack goes through `to_extension`."""
    # Strict: else a tuple is written as a list and a subclass of int as an int, unseen.
    return cast("bytes", msgpack.packb(value, default=to_extension, strict_types=True))


def unpack(payload: bytes | memoryview) -> object:
    """The value of these bytes."""
    return msgpack.unpackb(payload, ext_hook=_from_extension, strict_map_key=False)


def to_extension(value: object) -> msgpack.ExtType:
    """What msgpack asks for a value that it has no type for."""
    writer = _WRITERS.get(type(value))
    if writer is None:
        msg = f"MessagePack has no type for {type(value).__name__}"
        raise SerializationError(msg)
    code, data = writer(value)
    return msgpack.ExtType(code, data)


def _from_extension(code: int, data: bytes) -> object:
    reader = _READERS.get(code)
    if reader is None:
        msg = f"extension type {code} is not known; it was written by a later version or by something else"
        raise SerializationError(msg)
    return reader(data)


def _write_datetime(value: datetime.datetime) -> tuple[int, bytes]:
    if value.fold:
        msg = "the second of two equal local times (fold=1) has no place in ISO 8601"
        raise SerializationError(msg)
    offset = value.utcoffset()
    if offset is None and value.tzinfo is not None:
        msg = f"the time zone {value.tzinfo!r:.40} has no offset from UTC"
        raise SerializationError(msg)
    return _DATETIME, value.isoformat().encode()


def _write_decimal(value: decimal.Decimal) -> tuple[int, bytes]:
    return _DECIMAL, str(value).encode()


def _write_int(value: int) -> tuple[int, bytes]:
    return _LARGE_INT, f"{value:x}".encode()


_WRITERS: Mapping[type, Callable[..., tuple[int, bytes]]] = {
    tuple: lambda value: (_TUPLE, pack(list(value))),
    int: _write_int,
    decimal.Decimal: _write_decimal,
    datetime.date: lambda value: (_DATE, value.isoformat().encode()),
    datetime.datetime: _write_datetime,
    uuid.UUID: lambda value: (_UUID, value.bytes),
    set: lambda value: (_SET, pack(list(value))),
    frozenset: lambda value: (_FROZENSET, pack(list(value))),
}

_READERS: Mapping[int, Callable[[bytes], object]] = {
    _TUPLE: lambda data: tuple(cast("list[object]", unpack(data))),
    _LARGE_INT: lambda data: int(data, 16),
    _DECIMAL: lambda data: decimal.Decimal(data.decode("ascii")),
    _DATE: lambda data: datetime.date.fromisoformat(data.decode("ascii")),
    _DATETIME: lambda data: datetime.datetime.fromisoformat(data.decode("ascii")),
    _UUID: lambda data: uuid.UUID(bytes=data),
    _SET: lambda data: set(cast("list[object]", unpack(data))),
    _FROZENSET: lambda data: frozenset(cast("list[object]", unpack(data))),
}
