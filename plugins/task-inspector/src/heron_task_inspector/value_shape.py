"""The shape of values: what is left when no value may leave the task.

A key becomes a hash of its type, so equal keys stay equal and their skew stays. All other values become the same value
of their type: a text of the same length, an integer of 0, a list of the shapes of its entries. No code of the values'
classes runs, because only exact types are looked at.
"""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from types import NoneType
from typing import Final, cast
from uuid import UUID
from zoneinfo import ZoneInfo

from heron.author_text import class_name
from heron.errors import EmitError
from heron.planner.key_encoding import encode_key
from heron.spi.task_capture import CaptureShape
from heron_task_inspector.plain_pickle import UnkeptError

__all__ = ["ValueShape"]

_DIGEST_BYTES = 16
_NUMBER_BITS = 53  # a float holds them exactly, so 1 and 1.0 stay one key
_MOST_KEYS = 100_000  # hashes that are remembered
_DEEPEST = 32
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - the shape of a time without a zone
_ZONES = (NoneType, timezone, ZoneInfo)
_DAYS = 3_000_000  # of the calendar: fewer than `date.max` has


class ValueShape:
    """Makes rows of shapes of the rows of a stream."""

    def __init__(self, shape: CaptureShape) -> None:
        self._shape = shape
        self._hashes: dict[tuple[type, object], object] = {}

    def rows(self, stream: str, fields: Sequence[str], rows: Sequence[object]) -> list[object]:
        """Return the shapes of rows; a row of a stream with one field is the value.

        Raises:
            UnkeptError: when a value has another type than can be captured, or is nested too deeply.
        """
        shapes = [self.key if (stream, field) in self._shape.keys else self.shape for field in fields]
        if len(fields) == 1:
            return list(map(shapes[0], rows))
        return [
            tuple(of(value) for of, value in zip(shapes, cast("tuple[object, ...]", row), strict=True)) for row in rows
        ]

    def key(self, value: object) -> object:
        """Return the hash of a key, of the same type; None is None."""
        kind = type(value)
        if kind not in _HASHES:  # only plain values are looked up: the hash of a tuple may run code of its entries
            return self._hashed(value, 0)
        place = (kind, value)
        found = self._hashes.get(place, self)
        if found is self:
            if len(self._hashes) >= _MOST_KEYS:
                self._hashes.clear()
            found = self._hashes[place] = self._hashed(value, 0)
        return found

    def shape(self, value: object, depth: int = 0) -> object:
        """Return what is left of a value that is no key."""
        constant = _SHAPES.get(type(value))
        if constant is not None:
            return constant(value)
        if depth > _DEEPEST:
            reason = "values that are nested too deeply"
            raise UnkeptError(reason)
        if type(value) is list:
            return [self.shape(each, depth + 1) for each in value]
        if type(value) is tuple:
            return tuple(self.shape(each, depth + 1) for each in value)
        if type(value) is dict:
            return {self.key(name): self.shape(each, depth + 1) for name, each in value.items()}
        if type(value) is set:
            return set(range(len(value)))
        if type(value) is frozenset:
            return frozenset(range(len(value)))
        raise UnkeptError(class_name(value))

    def _hashed(self, value: object, depth: int) -> object:
        if type(value) is tuple:
            if depth > _DEEPEST:
                reason = "keys that are nested too deeply"
                raise UnkeptError(reason)
            return tuple(self._hashed(each, depth + 1) for each in value)
        if type(value) is bool:
            return value ^ bool(sum(self._shape.salt) & 1)
        make = _HASHES.get(type(value))
        if make is None or (type(value) is datetime and type(value.tzinfo) not in _ZONES):
            raise UnkeptError(class_name(value))
        try:
            content = encode_key((value,))
        except EmitError as error:
            raise UnkeptError(class_name(value)) from error
        return make(value, hashlib.blake2b(content, digest_size=_DIGEST_BYTES, key=self._shape.salt).digest())


def _number(digest: bytes) -> int:
    return int.from_bytes(digest[:8], "little") >> (64 - _NUMBER_BITS)


def _zone(value: datetime) -> timezone | None:
    return None if value.tzinfo is None else UTC


def _text(digest: bytes) -> str:
    return urlsafe_b64encode(digest[:9]).decode()


_HASHES: Final[Mapping[type, Callable[..., object]]] = {
    NoneType: lambda _value, _digest: None,
    bool: lambda value, _digest: value,  # both values of it are exchanged, or none
    int: lambda _value, digest: _number(digest),
    float: lambda _value, digest: float(_number(digest)),
    Decimal: lambda _value, digest: Decimal(_number(digest)),
    str: lambda value, digest: _text(digest).ljust(len(value), "-"),
    bytes: lambda value, digest: _text(digest).encode().ljust(len(value), b"-"),
    date: lambda _value, digest: date.fromordinal(1 + _number(digest) % _DAYS),
    datetime: lambda value, digest: _EPOCH.replace(tzinfo=_zone(value)) + timedelta(microseconds=_number(digest)),
    UUID: lambda _value, digest: UUID(bytes=digest),
}
"""A stand-in for each type of keys, from the value and its digest. Of a text, it has the length."""

_SHAPES: Final[Mapping[type, Callable[..., object]]] = {
    NoneType: lambda _value: None,
    bool: lambda _value: False,
    int: lambda _value: 0,
    float: lambda _value: 0.0,
    complex: lambda _value: 0j,
    str: lambda value: "x" * len(value),
    bytes: lambda value: bytes(len(value)),
    bytearray: lambda value: bytearray(len(value)),
    Decimal: lambda _value: Decimal(0),
    date: lambda _value: _EPOCH.date(),
    datetime: lambda value: _EPOCH.replace(tzinfo=_zone(value)),
    time: lambda _value: time(),
    timedelta: lambda _value: timedelta(),
    timezone: lambda _value: UTC,
    UUID: lambda _value: UUID(int=0),
}
