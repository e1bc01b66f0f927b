"""The parameters of requests: one declaration checks a value and describes it in the OpenAPI document.

A request with an unknown, repeated or malformed parameter is refused. Otherwise a typing error would
look like an answer.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from heron.errors import known, nearest
from heron_service_tracker.request_errors import MalformedQueryError

__all__ = ["Parameter", "Values", "parsed"]

MAX_TEXT = 1000  # characters; names have at most 200

_INTEGER = re.compile(r"[0-9]{1,15}")
_NUMBER = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,9})?")


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of the query. `default` None means that it may be left out; `many` that it may be repeated."""

    name: str
    meaning: str
    kind: Literal["text", "integer", "number"] = "text"
    default: str | float | None = None
    least: float | None = None
    most: float | None = None
    required: bool = False
    many: bool = False

    def value(self, text: str) -> str | int | float:
        """Return the value of a text; raise `MalformedQueryError` when it is none."""
        if self.kind == "text":
            if len(text) > MAX_TEXT or "\x00" in text:
                msg = f"parameter {self.name!r}: use at most {MAX_TEXT} characters, without NUL"
                raise MalformedQueryError(msg)
            return text
        pattern = _INTEGER if self.kind == "integer" else _NUMBER
        if pattern.fullmatch(text) is None:
            msg = f"parameter {self.name!r}: {text[:50]!r} is not a {self._range()}"
            raise MalformedQueryError(msg)
        number = int(text) if self.kind == "integer" else float(text)
        if (
            not (-math.inf if self.least is None else self.least)
            <= number
            <= (math.inf if self.most is None else self.most)
        ):
            msg = f"parameter {self.name!r}: {text} is not a {self._range()}"
            raise MalformedQueryError(msg)
        return number

    def schema(self) -> dict[str, object]:
        """The JSON schema of one value."""
        if self.kind == "text":
            return {"type": "string", "maxLength": MAX_TEXT}
        found: dict[str, object] = {"type": self.kind}
        if self.least is not None:
            found["minimum"] = self.least
        if self.most is not None:
            found["maximum"] = self.most
        if self.default is not None:
            found["default"] = self.default
        return found

    def _range(self) -> str:
        what = "whole number" if self.kind == "integer" else "number"
        if self.least is not None and self.most is not None:
            return f"{what} from {self.least:g} to {self.most:g}"
        return f"{what} of at least {self.least:g}" if self.least is not None else what


class Values:
    """The checked values of a request."""

    def __init__(self, values: Mapping[str, str | float | tuple[str | float, ...] | None]) -> None:
        self._values = values

    def text(self, name: str) -> str:
        """The text of a parameter; "" when it was left out."""
        found = self._values.get(name)
        return found if isinstance(found, str) else ""

    def texts(self, name: str) -> tuple[str, ...]:
        """All texts of a parameter that may be repeated."""
        found = self._values.get(name)
        return tuple(str(each) for each in found) if isinstance(found, tuple) else ()

    def integer(self, name: str) -> int:
        """The whole number of a parameter; 0 when it was left out."""
        found = self._values.get(name)
        return int(found) if isinstance(found, int | float) else 0

    def number(self, name: str, default: float = 0.0) -> float:
        """The number of a parameter."""
        found = self._values.get(name)
        return float(found) if isinstance(found, int | float) else default


def parsed(declared: Sequence[Parameter], given: Iterable[tuple[str, str]], *, strict: bool = True) -> Values:
    """Check the parameters of a request. Without `strict`, unknown ones are ignored.

    Raises:
        MalformedQueryError: when one is unknown, repeated, missing or malformed; names it.
    """
    by_name = {each.name: each for each in declared}
    found: dict[str, list[str | float]] = {}
    for name, text in given:
        if name not in by_name:
            if not strict:
                continue
            near = nearest(name[:100], by_name)
            msg = f"parameter {name[:100]!r} is unknown{near}; known: {known(by_name)}"
            raise MalformedQueryError(msg)
        found.setdefault(name, []).append(by_name[name].value(text))
    values: dict[str, str | float | tuple[str | float, ...] | None] = {}
    for each in declared:
        given_values = found.get(each.name, [])
        if len(given_values) > 1 and not each.many:
            msg = f"parameter {each.name!r} is given {len(given_values)} times; give it once"
            raise MalformedQueryError(msg)
        if each.required and not given_values:
            msg = f"parameter {each.name!r} is missing: {each.meaning}"
            raise MalformedQueryError(msg)
        if each.many:
            values[each.name] = tuple(given_values)
        else:
            values[each.name] = given_values[0] if given_values else each.default
    return Values(values)
