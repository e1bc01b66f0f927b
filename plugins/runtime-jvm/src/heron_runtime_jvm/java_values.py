"""Values that only Java tells apart, and the check of the values that go to a JVM.

A Java component whose stream goes to JVMs alone may emit what is no plain data. Python carries it without a change.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from heron.author_text import class_name
from heron.errors import SerializationError

__all__ = ["JavaLong", "JavaObject", "java_value", "sendable", "unsendable"]

_LONG, _KRYO = 1, 2
_DEEPEST = 100  # levels; far below what encoders and Python's own calls allow
_LEAST, _MOST = -(2**63), 2**63 - 1
_PLAIN = frozenset({str, bool, type(None), bytes, float})


class JavaLong(int):
    """A small number that is a Long of Java, between two components in JVMs. An int that fits is an Integer there."""

    __slots__ = ()


class JavaObject(bytes):
    """An object of Java that is no plain data, as the bytes of Storm's Kryo, between two components in JVMs."""

    __slots__ = ()


def java_value(code: int, data: memoryview) -> object:
    """Return the value of an extension type of MessagePack.

    Raises:
        ValueError: when the type is unknown.
    """
    if code == _LONG:
        return JavaLong(int.from_bytes(data, "big", signed=True))
    if code == _KRYO:
        return JavaObject(data)
    msg = f"extension type {code} is unknown"
    raise ValueError(msg)


def sendable(row: Sequence[object]) -> Sequence[object]:
    """Return a row as it is encoded for a JVM.

    Raises:
        SerializationError: when Java would receive another value; it has the place of the value, in brackets.
    """
    for value in row:
        kind = type(value)
        if kind not in _PLAIN and not (kind is int and _LEAST <= value <= _MOST):  # type: ignore[operator]
            return [_converted(each, f"[{position}]", 0) for position, each in enumerate(row)]
    return row


def unsendable(row: Sequence[object], error: Exception) -> SerializationError:
    """Return the error of a row that no encoder takes: a text in it has half a character, a lone surrogate."""
    for position, value in enumerate(row):
        try:
            msgspec.msgpack.encode(value)
        except (ValueError, TypeError, RecursionError):
            return _refused(f"[{position}]", f"cannot be encoded ({error})", "give text that UTF-8 has")
    return _refused("", f"cannot be encoded ({error})", "give plain data")


def _converted(value: object, place: str, depth: int) -> object:
    kind = type(value)
    if kind in _PLAIN:
        return value
    if depth >= _DEEPEST:
        raise _refused(place, f"is nested in {_DEEPEST} values", "make it flatter")
    if isinstance(value, int):
        return _number(value, place)
    if isinstance(value, JavaObject):
        return msgspec.msgpack.Ext(_KRYO, bytes(value))
    if isinstance(value, list | tuple):
        return [_converted(each, f"{place}[{position}]", depth + 1) for position, each in enumerate(value)]
    if isinstance(value, dict):
        for key in value:
            if type(key) not in _PLAIN and type(key) is not int:  # a Long as a key travels by Kryo
                raise _refused(place, f"has a key that is a {class_name(key)}", "use texts or numbers as keys")
        return {
            _converted(key, place, depth): _converted(each, f"{place}[{key!r:.40}]", depth + 1)
            for key, each in value.items()
        }
    raise _refused(place, f"is a {class_name(value)}", "give None, bool, int, float, str, bytes, list or dict")


def _number(value: int, place: str) -> object:
    if not _LEAST <= value <= _MOST:
        raise _refused(place, "is an integer of more than 64 bits", "give it as a text")
    if isinstance(value, JavaLong):
        return msgspec.msgpack.Ext(_LONG, value.to_bytes(8, "big", signed=True))
    if type(value) is not int:
        raise _refused(place, f"is a {class_name(value)}", "give an int")
    return value


def _refused(place: str, why: str, remedy: str) -> SerializationError:
    return SerializationError(f"the value {place} of the tuple {why}, which Java cannot receive; {remedy}")
