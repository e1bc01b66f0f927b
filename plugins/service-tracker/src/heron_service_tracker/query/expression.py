"""The syntax of queries: nested ``OPERATOR(argument, …)``. Pure.

``TS(component, instance, metric)`` reads; all other operators take numbers and expressions. Names may contain
everything but commas and parentheses. Source: Apache Heron 0.20.5, ``heron/tools/tracker``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from heron.errors import known, nearest
from heron_service_tracker.request_errors import MalformedQueryError

__all__ = ["MOST_CHARACTERS", "Operation", "Read", "parse_query", "reads_of"]

MOST_CHARACTERS = 1000
"""The limit of a query; so it has some hundreds of operators at most."""

_DEEPEST = 20
_NUMBER = re.compile(r"-?\d{1,15}(\.\d{1,15})?")
_TOKEN = re.compile(r"[(),]|[^(),]+")
_ARGUMENTS = {
    "DEFAULT": (2, 2),
    "DIVIDE": (2, 2),
    "MAX": (1, None),
    "MULTIPLY": (2, 2),
    "PERCENTILE": (2, None),
    "RATE": (1, 1),
    "SUBTRACT": (2, 2),
    "SUM": (1, None),
}
_FIRST = {"DEFAULT": (-1e15, 1e15), "PERCENTILE": (0.0, 100.0)}
_READS = "TS"


@dataclass(frozen=True, slots=True)
class Read:
    """The values of a metric by minute, of one instance, or of each of them (``*``)."""

    component: str
    instance: str
    metric: str


@dataclass(frozen=True, slots=True)
class Operation:
    """An operator and its arguments. `number` is the first one of DEFAULT and PERCENTILE, which is a number."""

    name: str
    arguments: tuple[Operation | Read | float, ...]
    number: float = 0.0


Expression = Operation | Read | float


def parse_query(text: str) -> Operation | Read:
    """Return the expression of a query.

    Raises:
        MalformedQueryError: when it is none; the message has the part and what is expected.
    """
    if len(text) > MOST_CHARACTERS:
        msg = f"the query has {len(text)} characters; the limit is {MOST_CHARACTERS}"
        raise MalformedQueryError(msg)
    parser = _Parser(text)
    found = parser.expression(0)
    parser.expect_end()
    if isinstance(found, float):
        msg = f"the query {text[:50]!r} is a number; use an operator: {known((_READS, *_ARGUMENTS))}"
        raise MalformedQueryError(msg)
    return found


def reads_of(expression: Expression) -> Iterator[Read]:
    """Yield each part of an expression that reads."""
    if isinstance(expression, Read):
        yield expression
    elif isinstance(expression, Operation):
        for each in expression.arguments:
            yield from reads_of(each)


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = [each.strip() for each in _TOKEN.findall(text) if each.strip()]
        self._at = 0

    def expression(self, depth: int) -> Expression:
        if depth > _DEEPEST:
            msg = f"the query has more than {_DEEPEST} operators within each other"
            raise MalformedQueryError(msg)
        word = self._word()
        if _NUMBER.fullmatch(word):
            return float(word)
        if word != _READS and word not in _ARGUMENTS:
            names = (_READS, *_ARGUMENTS)
            msg = f"operator {word[:50]!r} is unknown{nearest(word[:50], names)}; known: {known(names)}"
            raise MalformedQueryError(msg)
        self._expect("(", word)
        return self._read() if word == _READS else self._operation(word, depth)

    def expect_end(self) -> None:
        if self._at < len(self._tokens):
            msg = f"the query goes on after its end, with {self._tokens[self._at][:50]!r}"
            raise MalformedQueryError(msg)

    def _read(self) -> Read:
        component = self._word()
        self._expect(",", _READS)
        instance = self._word()
        self._expect(",", _READS)
        metric = self._word()
        self._expect(")", _READS)
        return Read(component, instance, metric)

    def _operation(self, name: str, depth: int) -> Operation:
        arguments = [self.expression(depth + 1)]
        while self._next() == ",":
            self._at += 1
            arguments.append(self.expression(depth + 1))
        self._expect(")", name)
        least, most = _ARGUMENTS[name]
        if len(arguments) < least or (most is not None and len(arguments) > most):
            wanted = f"{least}" if most == least else f"at least {least}"
            msg = f"{name} has {len(arguments)} arguments; give it {wanted}"
            raise MalformedQueryError(msg)
        if name not in _FIRST:
            return Operation(name, tuple(arguments))
        first, (lowest, highest) = arguments[0], _FIRST[name]
        if not isinstance(first, float) or not lowest <= first <= highest:
            msg = f"the first argument of {name} is not a number from {lowest:g} to {highest:g}"
            raise MalformedQueryError(msg)
        return Operation(name, tuple(arguments[1:]), first)

    def _next(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _word(self) -> str:
        found = self._next()
        if not found or found in "(),":
            msg = f"the query has {found or 'its end'!r} where an operator, a number or a name is expected"
            raise MalformedQueryError(msg)
        self._at += 1
        return found

    def _expect(self, wanted: str, operator: str) -> None:
        found = self._next()
        if found != wanted:
            msg = f"{operator} has {found[:50] or 'the end of the query'!r} where {wanted!r} is expected"
            raise MalformedQueryError(msg)
        self._at += 1
