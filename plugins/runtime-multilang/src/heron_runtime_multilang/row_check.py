"""Which values a child can receive. What a framing would change without a word is refused.

JSON has no bytes, no NaN and no sets, and the keys of its objects are text. Encoders turn such values into something
else. JavaScript rounds integers of more than 53 bits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from heron.author_text import class_name
from heron.errors import SerializationError

__all__ = ["RowCheck"]

_DEEPEST = 100  # levels; far below what encoders and Python's own calls allow
_BITS_OF_DOUBLES = 53


class RowCheck:
    """Refuses rows that a child cannot receive as they are. An error has the place of the value, in brackets."""

    def __init__(self, framing: str, integer_bits: int) -> None:
        self._framing = framing
        self._bits = integer_bits
        self._least, self._most = -(2 ** (integer_bits - 1)), 2**integer_bits - 1
        if integer_bits == _BITS_OF_DOUBLES:  # they have a sign of their own
            self._least = -self._most
        self._is_json = framing == "json"
        scalars = (str, bool, type(None))
        self._plain: frozenset[type] = frozenset(scalars if self._is_json else (*scalars, bytes, float))

    def check(self, row: Sequence[object]) -> None:
        """Check a row.

        Raises:
            SerializationError: when the child would receive another value.
        """
        plain = self._plain
        for position, value in enumerate(row):
            if type(value) not in plain:
                self._check(value, f"[{position}]", 0)

    def _check(self, value: object, place: str, depth: int) -> None:
        if isinstance(value, list | tuple | dict):
            if depth >= _DEEPEST:
                raise _refused(place, f"is nested in {_DEEPEST} values", "make it flatter")
            if isinstance(value, dict):
                _check_keys(value, place)
            entries = value.items() if isinstance(value, dict) else enumerate(value)
            for key, each in entries:
                self._check(each, f"{place}[{key!r:.40}]", depth + 1)
        elif type(value) not in self._plain:
            self._check_scalar(value, place)

    def _check_scalar(self, value: object, place: str) -> None:
        if type(value) is int:
            if not self._least <= value <= self._most:
                raise _refused(place, f"is an integer of more than {self._bits} bits", "give it as a text")
        elif type(value) is float:
            if not math.isfinite(value):
                raise _refused(place, f"is {value}, which JSON cannot carry", "give None, or use framing='msgpack'")
        else:
            remedy = "encode it as a text" if type(value) is bytes else "give None, bool, int, float, str, list or dict"
            raise _refused(place, f"is a {class_name(value)}, which {self._framing} cannot carry", remedy)


def _check_keys(value: Mapping[object, object], place: str) -> None:
    for key in value:
        if type(key) is not str:
            raise _refused(place, f"has a key that is a {class_name(key)}", "use texts as keys")


def _refused(place: str, why: str, remedy: str) -> SerializationError:
    return SerializationError(f"the value {place} of the tuple {why}; {remedy}")
