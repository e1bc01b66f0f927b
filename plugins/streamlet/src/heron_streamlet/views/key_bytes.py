"""Keys of views as bytes: the canonical bytes of keys that decide about tasks, so equal keys are one key everywhere."""

from __future__ import annotations

import struct
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from uuid import UUID

from heron.planner.key_encoding import encode_key

__all__ = ["key_bytes", "key_of"]

_EPOCH_DAY = date(1970, 1, 1).toordinal()
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  # of datetimes without a zone
_int = struct.Struct("<q").unpack_from
_float = struct.Struct("<d").unpack_from
_size = struct.Struct("<Q").unpack_from


def key_bytes(key: object) -> bytes:
    """The bytes of a key, see `heron.planner.key_encoding`.

    Raises:
        EmitError: when the key cannot be a key.
    """
    return encode_key((key,))


def key_of(data: bytes) -> object:
    """The key of `key_bytes`. A number that is an integer comes back as int, whatever its type was.

    Raises:
        ValueError: when the bytes are none of a key.
    """
    try:
        key, end = _read(data, 0)
    except (struct.error, ValueError, ArithmeticError) as error:
        msg = f"{data[:40]!r} are not the bytes of a key"
        raise ValueError(msg) from error
    if end != len(data):
        msg = f"{data[:40]!r}: {len(data) - end} bytes behind the key"
        raise ValueError(msg)
    return key


def _read(data: bytes, start: int) -> tuple[object, int]:
    """The value at this place, and the place behind it."""
    tag, at = data[start : start + 1], start + 1
    if tag == b"n":
        return None, at
    if tag in b"iDtT":
        number: int = _int(data, at)[0]
        return _of_integer(tag, number), at + 8
    if tag == b"f":
        value: float = _float(data, at)[0]
        return int(value) if value.is_integer() else value, at + 8
    if tag == b"u":
        return UUID(bytes=data[at : at + 16]), at + 16
    size: int = _size(data, at)[0]
    at += 8
    if tag != b"(" and at + size > len(data):
        raise ValueError(size)
    if tag == b"(":
        values = []
        for _ in range(size):
            each, at = _read(data, at)
            values.append(each)
        return tuple(values), at
    return _of_text(tag, data[at : at + size]), at + size


def _of_integer(tag: bytes, number: int) -> object:
    if tag == b"D":
        return date.fromordinal(_EPOCH_DAY + number)
    if tag == b"i":
        return number
    time = _EPOCH + timedelta(microseconds=number)
    return time if tag == b"t" else time.replace(tzinfo=UTC)


def _of_text(tag: bytes, text: bytes) -> object:
    if tag == b"s":
        return text.decode("utf-8", "surrogatepass")
    if tag == b"b":
        return text
    if tag == b"d":
        number = Decimal(text.decode("ascii"))
        return int(number) if number == number.to_integral_value() else number
    raise ValueError(tag)
