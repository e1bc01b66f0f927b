"""Extension types for values without a MessagePack type. The meaning of a number never changes:

    1  tuple              a packed array
    2  int beyond 64 bit  hexadecimal digits, with a sign if it is negative
    3  Decimal            its text, as ``1.10``
    4  date               ISO 8601, ``2024-02-29``
    5  datetime           ISO 8601 with microseconds, and with the offset from UTC if it has one
    6  UUID               its 16 bytes
    7  set, 8  frozenset  a packed array

All text is ASCII. An instance of a subclass is refused, because it would arrive with another type.
"""

from __future__ import annotations

import datetime
import decimal
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Final, cast

import msgpack

from heron.author_text import class_name
from heron.errors import SerializationError
from heron.spi.serializer import UndecodableValue

__all__ = ["pack", "to_extension", "unpack", "unpack_each"]

_REMEDY: Final = "correct the program that writes it: text is UTF-8, and extension types are those of this serializer"

_TUPLE, _LARGE_INT, _DECIMAL, _DATE, _DATETIME, _UUID, _SET, _FROZENSET = range(1, 9)


def pack(value: object) -> bytes:
    """Return the bytes of a value; values without a MessagePack type go through `to_extension`."""
    # Without strict_types, msgpack writes a tuple as a list, and an instance of a subclass of int as an int.
    return cast("bytes", msgpack.packb(value, default=to_extension, strict_types=True))


def unpack(payload: bytes | memoryview) -> object:
    """Return the value of these bytes."""
    return msgpack.unpackb(payload, ext_hook=_from_extension, strict_map_key=False)


def unpack_each(payload: bytes) -> list[Sequence[object]]:
    """Return the columns of a batch, with an `UndecodableValue` for each value that cannot be unpacked."""
    values = msgpack.Unpacker(max_buffer_size=0)
    values.feed(payload)
    columns: list[Sequence[object]] = []
    for _ in range(values.read_array_header()):
        column: list[object] = []
        for _ in range(values.read_array_header()):
            start = values.tell()
            values.skip()  # decodes nothing
            column.append(_unpack_or_not(payload[start : values.tell()]))
        columns.append(column)
    return columns


def _unpack_or_not(packed: bytes) -> object:
    try:
        return unpack(packed)
    except Exception as error:
        return UndecodableValue(_kind(packed[0]), error, _REMEDY)


def _kind(first: int) -> str:
    """The kind of a value by its first byte."""
    return next((kind for kind, numbers in _KINDS.items() if first in numbers), "value")


_KINDS: Final[Mapping[str, frozenset[int]]] = {
    "text": frozenset({*range(0xA0, 0xC0), *range(0xD9, 0xDC)}),
    "array": frozenset({*range(0x90, 0xA0), 0xDC, 0xDD}),
    "map": frozenset({*range(0x80, 0x90), 0xDE, 0xDF}),
    "extension": frozenset({*range(0xC7, 0xCA), *range(0xD4, 0xD9)}),
}


def to_extension(value: object) -> msgpack.ExtType:
    """Return the extension type of a value; msgpack calls it for values without a MessagePack type."""
    writer = _WRITERS.get(type(value))
    if writer is None:
        msg = f"MessagePack has no type for {type(value).__name__}"
        raise SerializationError(msg)
    code, data = writer(value)
    return msgpack.ExtType(code, data)


def _from_extension(code: int, data: bytes) -> object:
    reader = _READERS.get(code)
    if reader is None:
        msg = f"extension type {code} is unknown; a later version or another program wrote it"
        raise SerializationError(msg)
    try:
        return reader(data)
    except (ValueError, ArithmeticError, TypeError):  # its text has the value
        msg = f"{len(data)} bytes of extension type {code} are no value of that type"
        raise SerializationError(msg) from None


def _write_datetime(value: datetime.datetime) -> tuple[int, bytes]:
    if value.fold:
        msg = "ISO 8601 cannot express the second of two equal local times (fold=1)"
        raise SerializationError(msg)
    offset = value.utcoffset()
    if offset is None and value.tzinfo is not None:
        msg = f"a time zone of type {class_name(value.tzinfo)} has no offset from UTC"
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
