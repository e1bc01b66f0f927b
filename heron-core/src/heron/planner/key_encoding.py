"""The canonical, language-neutral bytes of a key: keys that compare equal have the same bytes in every process.

A key is the tuple of a grouping's field values; its bytes are those of its values, one after the other. A value is one
tag byte and its content, all integers little-endian:

    n                       None
    i  i64                  a number that is an integer in -2^63 … 2^63-1 (bool, int, float or Decimal; -0.0 is 0)
    f  binary64             any other number that a binary64 holds exactly, infinities included; every NaN is the
                            one with the bits 0x7ff8000000000000
    d  u64 length, ASCII    any other number: ``[-]DIGITSEEXPONENT``, DIGITS without leading or trailing zero
    s  u64 length, UTF-8    str (a lone surrogate as its three bytes)
    b  u64 length, bytes    bytes
    D  i64                  date: days since 1970-01-01
    t  i64                  datetime without a zone: microseconds since 1970-01-01T00:00:00
    T  i64                  datetime with a zone: microseconds since 1970-01-01T00:00:00Z
    u  16 bytes             UUID, most significant byte first
    (  u64 count, values    tuple

Numbers are classified by value, never by type, so 1, 1.0, True and Decimal(1) are one key. A datetime in an hour that
its zone repeats counts as the first pass: Python compares both passes as equal, so they must be one key. A value of a
subclass is the key that its base class has for it, if it equals that value and has its hash. So it makes no difference
whether a cache of keys knows the value already. These bytes
decide which task has the state of a key, so the bytes of a value never change (WIRE.md, golden file).
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Final
from uuid import UUID

from heron.errors import EmitError

__all__ = ["MAX_DEPTH", "encode_key"]

MAX_DEPTH: Final = 32
"""The greatest depth of nested tuples in a key, far below the interpreter's recursion limit."""

_INT_LOW, _INT_END = -(1 << 63), 1 << 63
_INT_DIGITS = 19  # decimal digits of 2^63: a Decimal with more of them cannot be an i64
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_MICROSECOND = timedelta(microseconds=1)
_NONE = b"n"
_NAN = b"f" + (0x7FF8000000000000).to_bytes(8, "little")
_pack_int = struct.Struct("<cq").pack
_pack_float = struct.Struct("<cd").pack
_pack_size = struct.Struct("<cQ").pack


def encode_key(values: tuple[object, ...]) -> bytes:
    """The canonical bytes of a key, given as the values of the grouping's fields in their order.

    Raises:
        EmitError: when a value is of another type than the list above, or of a subclass that compares or hashes in its
            own way, or tuples nest deeper than `MAX_DEPTH`; names the value's place in the key, from 1.
    """
    return _encode_all(values, 0, values)


def _encode_all(values: tuple[object, ...], depth: int, key: tuple[object, ...]) -> bytes:
    parts = []
    for value in values:
        encoder = _ENCODERS.get(type(value))
        if encoder is not None:
            parts.append(encoder(value))
        elif type(value) is tuple:
            parts.append(_encode_tuple(value, depth + 1, key))
        else:
            parts.append(_encode_all((_plain(value, key),), depth, key))
    return b"".join(parts)


def _encode_tuple(value: tuple[object, ...], depth: int, key: tuple[object, ...]) -> bytes:
    if depth > MAX_DEPTH:
        msg = f"a key with tuples nested deeper than {MAX_DEPTH} levels cannot be grouped by; flatten it"
        raise EmitError(msg)
    return _pack_size(b"(", len(value)) + _encode_all(value, depth, key)


def _plain(value: object, key: tuple[object, ...]) -> object:
    """The value of the base class that a value of a subclass equals."""
    for base, copied in _PLAIN:
        if issubclass(type(value), base):  # not isinstance: a proxy only says that it is one
            with contextlib.suppress(Exception):  # of the author's methods
                plain = copied(value)
                if (value == plain and hash(value) == hash(plain)) or plain != plain:  # noqa: PLR0124  # NaN
                    return plain
            raise _refusal(value, key, f" and does not compare or hash as {base.__name__} does")
    raise _refusal(value, key)


def _refusal(value: object, key: tuple[object, ...], why: str = "") -> EmitError:
    place = next((at for at, each in enumerate(key, 1) if each is value), None)
    where = f"key value {place} of {len(key)}" if place else "a value inside a tuple of the key"
    return EmitError(
        f"{where} is of type {type(value).__qualname__}{why}, which cannot be grouped by; use None, bool, int, float, "
        "Decimal, str, bytes, date, datetime, UUID or a tuple of these"
    )


def _encode_none(_value: None) -> bytes:
    return _NONE


def _encode_int(value: int) -> bytes:
    if _INT_LOW <= value < _INT_END:
        return _pack_int(b"i", value)
    try:
        nearest = float(value)
    except OverflowError:
        return _encode_digits(Decimal(value))
    return _pack_float(b"f", nearest) if nearest == value else _encode_digits(Decimal(value))


def _encode_float(value: float) -> bytes:
    if value.is_integer() and _INT_LOW <= value < _INT_END:
        return _pack_int(b"i", int(value))
    return _pack_float(b"f", value) if value == value else _NAN  # noqa: PLR0124  # only a NaN differs from itself


def _encode_decimal(value: Decimal) -> bytes:
    if value.is_nan():
        return _NAN
    if not value:
        return _pack_int(b"i", 0)
    if value.is_finite() and value.adjusted() < _INT_DIGITS and value == int(value):
        return _encode_int(int(value))
    nearest = float(value)
    return _pack_float(b"f", nearest) if nearest == value else _encode_digits(value)


def _encode_digits(value: Decimal) -> bytes:
    # By way of Decimal, as str() of a very long int is refused by the interpreter.
    negative, digits, exponent = value.as_tuple()
    text = "".join(map(str, digits))
    significant = text.rstrip("0")
    power = int(exponent) + len(text) - len(significant)
    content = f"{'-' if negative else ''}{significant}E{power}".encode("ascii")
    return _pack_size(b"d", len(content)) + content


def _encode_str(value: str) -> bytes:
    content = value.encode("utf-8", "surrogatepass")
    return _pack_size(b"s", len(content)) + content


def _encode_bytes(value: bytes) -> bytes:
    return _pack_size(b"b", len(value)) + value


def _encode_date(value: date) -> bytes:
    return _pack_int(b"D", value.toordinal() - _EPOCH_DAY)


def _encode_datetime(value: datetime) -> bytes:
    hours = (value.toordinal() - _EPOCH_DAY) * 24 + value.hour
    micros = ((hours * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond
    # As for Python's own hash: the first of two passes, so that equal datetimes have equal bytes.
    offset = None if value.tzinfo is None else value.replace(fold=0).utcoffset()
    if offset is None:
        return _pack_int(b"t", micros)
    return _pack_int(b"T", micros - offset // _MICROSECOND)


def _encode_uuid(value: UUID) -> bytes:
    return b"u" + value.bytes


_ENCODERS: Final[dict[type, Callable[..., bytes]]] = {
    str: _encode_str,
    int: _encode_int,
    bool: _encode_int,
    float: _encode_float,
    type(None): _encode_none,
    bytes: _encode_bytes,
    Decimal: _encode_decimal,
    date: _encode_date,
    datetime: _encode_datetime,
    UUID: _encode_uuid,
}

_PLAIN: Final[tuple[tuple[type, Callable[..., object]], ...]] = (
    (str, str.__str__),
    (int, int.__int__),
    (float, float.__float__),
    (bytes, lambda value: bytes.__getitem__(value, slice(None))),
    (tuple, lambda value: tuple.__getitem__(value, slice(None))),
    (Decimal, Decimal),
    (datetime, lambda value: datetime.combine(datetime.date(value), datetime.timetz(value))),
    (date, lambda value: date.fromordinal(date.toordinal(value))),
    (UUID, lambda value: UUID(int=value.int)),
)
"""The base classes, `datetime` before `date`, each with what makes a plain value of one of a subclass."""
