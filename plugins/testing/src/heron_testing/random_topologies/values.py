"""The values and keys of random topologies: made from small numbers, and described as text that can be compared."""

from __future__ import annotations

import datetime
import math
import uuid
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from decimal import Decimal
from enum import Enum
from fractions import Fraction

from heron.driver_kit.loading import load_object

__all__ = [
    "COLUMN_KINDS",
    "KEYS",
    "KINDS",
    "PLAIN_KINDS",
    "SIZED_KINDS",
    "Undecodable",
    "bad_value",
    "described",
    "hash_of",
    "key_of",
    "value_of",
]

Maker = Callable[[int, int], object]
"""Makes a value of a size and a number."""

_LETTERS = "heron ключ 鷺 \x00\U0001f426\n"
_DAY = datetime.datetime(2024, 2, 29, 23, 59, 59, 999_999, tzinfo=datetime.UTC)
_SHOWN = 60  # characters of a value in a description


class Colour(Enum):
    """An enumeration of the author."""

    RED = 1
    GREEN = "green"


@dataclass(frozen=True)
class Point:
    """An object of the author."""

    x: int
    y: object


class Undecodable(Exception):  # not an error of this module: it is a value
    """An exception that pickles and does not unpickle, because its constructor has two arguments."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


def _text(size: int, number: int) -> str:
    start = number % len(_LETTERS)
    block = (_LETTERS[start:] + _LETTERS[:start]).encode()
    return (block * (size // len(block) + 1))[:size].decode(errors="ignore")


KINDS: Mapping[str, Maker] = {
    "none": lambda size, number: None,
    "bool": lambda size, number: bool(number % 2),
    "int": lambda size, number: number - 2**31,
    "large int": lambda size, number: (-1) ** number * (2**64 + number) ** 3,
    "float": lambda size, number: (number / 7, -0.0, math.inf, math.nan, 5e-324)[number % 5],
    "ascii": lambda size, number: "heron"[number % 5] * size,
    "text": _text,
    "bytes": lambda size, number: bytes([number % 256]) * size,
    "decimal": lambda size, number: Decimal(number).scaleb(-9),
    "time": lambda size, number: _DAY + datetime.timedelta(microseconds=number),
    "date": lambda size, number: datetime.date.min + datetime.timedelta(days=number % 1_000_000),
    "uuid": lambda size, number: uuid.UUID(int=number),
    "tuple": lambda size, number: (number, ("", None)) * min(size, 50),
    "list": lambda size, number: [number, [str(number)], []] * min(size, 50),
    "dict": lambda size, number: {"a": {number: [None]}, **{str(each): each for each in range(min(size, 50))}},
    "set": lambda size, number: {number, *range(min(size, 50))},
    "frozenset": lambda size, number: frozenset({str(number), ("x", 1)}),
    "fraction": lambda size, number: Fraction(number, 7),
    "complex": lambda size, number: complex(number, -1),
    "enum": lambda size, number: tuple(Colour)[number % 2],
    "object": lambda size, number: Point(number, [Point(1, "y" * min(size, 50))]),
}
"""Kinds of values."""

SIZED_KINDS = frozenset({"ascii", "text", "bytes"})
"""Kinds whose values may have any size."""

PLAIN_KINDS = ("none", "bool", "int", "float", "ascii", "text", "bytes")
"""Kinds that every serializer takes."""

COLUMN_KINDS = ("int", "float", "ascii", "text", "bytes", "bool", "time")
"""Kinds that have a type in columns. Where there are columns, all values of a program are of one of them."""

KEYS: tuple[object, ...] = ("", "b", "ключ", "a" * 100, 0, None, True, 2.5, -1, 10**30, b"b", ("a", 1), 1, 1.0)
"""Keys by number. Where there are columns, keys are the first four."""


def value_of(kind: str, size: int, identity: str) -> object:
    """The value of a kind and size that belongs to a tuple; `identity` chooses among the values of the kind.

    Raises:
        KeyError: when the kind is not one of `KINDS` and not ``MODULE:FUNCTION``.
        TypeError: when the name is not that of a function.
        PluginError: when there is no such name.
    """
    maker = load_object(kind) if ":" in kind else KINDS[kind]
    if not callable(maker):
        msg = f"kind {kind!r}: {maker!r:.60} is not a function; name a function of a size and a number"
        raise TypeError(msg)
    value: object = maker(size, hash_of(identity))
    return value


def bad_value(bad: str, tuple_max_bytes: int) -> object:
    """A value that cannot be encoded, cannot be decoded, or is larger than a tuple may be."""
    if bad == "undecodable":
        return Undecodable(7, "seven")
    if bad == "too large":
        return "x" * (tuple_max_bytes + 1)
    return (number for number in range(0))


def key_of(number: int) -> object:
    """The key of a number."""
    return KEYS[number % len(KEYS)]


def hash_of(text: str) -> int:
    """A number from 0 to 2**32 - 1 that is the same in every process."""
    return zlib.crc32(text.encode())


def described(value: object) -> str:
    """The type and content of a value, the same for equal values of equal types in every process.

    Long texts are cut, and end with their length and a hash.
    """
    text = _described(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… {len(text)} {hash_of(text):08x}"


def _described(value: object) -> str:
    name = type(value).__name__
    if isinstance(value, set | frozenset):
        return f"{name}({', '.join(sorted(map(_described, value)))})"
    if isinstance(value, list | tuple):
        return f"{name}({', '.join(map(_described, value))})"
    if isinstance(value, dict):
        return f"{name}({', '.join(f'{_described(key)}: {_described(each)}' for key, each in value.items())})"
    if is_dataclass(value):
        return f"{name}({', '.join(_described(getattr(value, each.name)) for each in fields(value))})"
    if isinstance(value, datetime.datetime):
        return f"{name} {value.isoformat()}"
    return f"{name} {value!r}"
