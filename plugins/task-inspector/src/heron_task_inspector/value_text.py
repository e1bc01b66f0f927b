"""Values of tuples as short text, for people. Runs no code of their classes, and takes bounded time for any value.

An object of the author's own class is shown by its fields: its `__repr__` may raise, take minutes or make megabytes.
"""

from __future__ import annotations

import datetime
import decimal
import fractions
import sys
import uuid
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from types import MemberDescriptorType
from typing import cast

from heron.driver_kit.redaction import names_secret, redact
from heron_task_inspector.object_sizes import attributes_of, entries_of, first_entries, type_name

__all__ = ["LONGEST", "ValueText"]

LONGEST = 120
"""Characters of a value."""

_DEEPEST = 4
_ENTRIES = 15  # of a container: more than the longest text shows
_LARGEST_BITS = 4096
_HIDDEN = "(hidden)"
_Part = Callable[[object, slice], object]
_TEXTS: tuple[tuple[type, _Part, Callable[[object], int]], ...] = (
    (str, cast("_Part", str.__getitem__), cast("Callable[[object], int]", str.__len__)),
    (bytes, cast("_Part", bytes.__getitem__), cast("Callable[[object], int]", bytes.__len__)),
    (bytearray, cast("_Part", bytearray.__getitem__), cast("Callable[[object], int]", bytearray.__len__)),
)
_NUMBERS: tuple[type, ...] = (int, float, complex)
_SIMPLE = (
    datetime.date,
    datetime.datetime,
    datetime.time,
    datetime.timedelta,
    decimal.Decimal,
    fractions.Fraction,
    uuid.UUID,
)
_BRACES = ("{", "}")
_BRACKETS = {"list": ("[", "]"), "tuple": ("(", ")"), "set": _BRACES, "frozenset": _BRACES, "dict": _BRACES}


class ValueText:
    """Makes the texts; `secrets` are hidden wherever they occur."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets = tuple(secrets)
        self._window = LONGEST + max(map(len, self._secrets), default=0)  # a secret is never cut before it is found

    def of(self, name: str, value: object) -> str:
        """The text of the value of a field; the value of a field whose name says so is hidden."""
        if names_secret(name):
            return _HIDDEN
        text = ""
        try:
            for piece in self._pieces(value, 0):
                text += piece
                if len(text) > self._window:
                    break
        except Exception as error:  # a thread of the author may change it meanwhile
            text = f"<{type_name(type(value))}, which cannot be shown: {type(error).__name__}>"
        text = redact(text, self._secrets, _HIDDEN)
        return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"

    def _pieces(self, value: object, depth: int) -> Iterator[str]:
        kind = type(value)
        if value is None or kind is bool:
            yield str(value)
        elif any(issubclass(kind, base) for base, _, _ in _TEXTS):
            yield self._quoted(value, kind)
        elif issubclass(kind, _NUMBERS):
            yield _number(value, kind)
        elif any(kind is each for each in _SIMPLE):  # `in` would ask the metaclass
            yield _simple(value)
        elif (array := _array(value)) is not None:
            yield array
        elif depth >= _DEEPEST:
            yield "…"
        elif entries_of(value) is not None:
            yield from self._container(value, kind, depth)
        else:
            yield from self._object(value, kind, depth)

    def _quoted(self, value: object, kind: type) -> str:
        base, part_of, length_of = next(each for each in _TEXTS if issubclass(kind, each[0]))
        part, length = part_of(value, slice(0, self._window)), length_of(value)
        unit = "characters" if base is str else "bytes"
        return repr(part) if length <= self._window else f"{part!r}… ({length:,} {unit})"

    def _container(self, value: object, kind: type, depth: int) -> Iterator[str]:
        name = type_name(kind)
        opens, closes = _BRACKETS.get(name, (f"{name}(", ")"))
        yield opens
        entries, is_mapping = first_entries(value, _ENTRIES), issubclass(kind, dict)
        if is_mapping:
            for number in range(0, len(entries), 2):
                key, held = entries[number], entries[number + 1]
                yield ", " if number else ""
                yield from self._pieces(key, depth + 1)
                yield ": "
                yield from self._named(str(key) if type(key) is str else "", held, depth)
        else:
            for number, held in enumerate(entries):
                yield ", " if number else ""
                yield from self._pieces(held, depth + 1)
        more = (entries_of(value) or 0) - len(entries) // (2 if is_mapping else 1)
        yield f", … {more:,} more{closes}" if more > 0 else closes

    def _object(self, value: object, kind: type, depth: int) -> Iterator[str]:
        yield f"{kind.__name__ if type(kind) is type else type_name(kind)}("
        for number, (name, held) in enumerate(islice(_fields(value, kind), _ENTRIES)):
            yield f"{', ' if number else ''}{name}="
            yield from self._named(name, held, depth)
        yield ")"

    def _named(self, name: str, held: object, depth: int) -> Iterator[str]:
        if name and names_secret(name):
            yield _HIDDEN
        else:
            yield from self._pieces(held, depth + 1)


def _simple(value: object) -> str:
    if isinstance(value, datetime.datetime | datetime.time) and value.tzinfo is not None:
        zone = type(value.tzinfo)
        known = datetime.timezone, getattr(sys.modules.get("zoneinfo"), "ZoneInfo", None)
        if not any(zone is each for each in known):  # its offset is a method of its author
            return f"{value.replace(tzinfo=None)} in {type_name(zone)}"
    return str(value)


def _number(value: object, kind: type) -> str:
    base = next(each for each in _NUMBERS if issubclass(kind, each))
    if base is int and (bits := int.bit_length(cast("int", value))) > _LARGEST_BITS:
        return f"<int of {bits:,} bits>"
    return cast("Callable[[object], str]", base.__repr__)(value)


def _array(value: object) -> str | None:
    """An array or a scalar of numpy, if that is what it is; numpy is not imported for it."""
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return None
    if issubclass(type(value), numpy.ndarray):
        return f"<array of {numpy.ndarray.dtype.__get__(value)}, shape {numpy.ndarray.shape.__get__(value)}>"
    if issubclass(type(value), numpy.generic):
        return repr(numpy.generic.item(value))
    return None


def _fields(value: object, kind: type) -> Iterator[tuple[str, object]]:
    """Attributes and slots of an object."""
    yield from ((str(name), held) for name, held in list(dict.items(attributes_of(value))))
    for base in type.__getattribute__(kind, "__mro__"):
        for name, slot in list(type.__getattribute__(base, "__dict__").items()):
            if type(slot) is MemberDescriptorType:
                try:
                    yield name, slot.__get__(value, kind)
                except AttributeError:  # it is not set
                    continue
