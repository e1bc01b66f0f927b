"""Evaluates queries over timelines. Pure: values by minute in, values by minute out.

A timeline without an instance is *univariate*: one for the whole expression. Those with instances are *multivariate*.
An operator on two of them goes by instance; one that has none is used with each instance of the other.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from heron_service_tracker.query.expression import Operation, Read

__all__ = ["MINUTE_S", "Minutes", "Timeline", "evaluated"]

MINUTE_S: Final = 60

Minutes = Mapping[int, float]
"""Values by the start of their minute, in seconds since 1970. A minute without a value is missing."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """The values of an instance, or of an expression over several ("")."""

    instance: str
    minutes: Minutes


def evaluated(
    expression: Operation | Read | float, times: range, read: Callable[[Read | float], list[Timeline]]
) -> list[Timeline]:
    """Return the timelines of an expression at these minutes; `read` returns those that it reads, and of numbers."""
    if isinstance(expression, Read | float):
        return read(expression)
    arguments = [evaluated(each, times, read) for each in expression.arguments]
    if expression.name in _PAIRS:
        return _by_instance(_PAIRS[expression.name], *arguments)
    number = expression.number
    if expression.name == "DEFAULT":
        return [Timeline(each.instance, {at: each.minutes.get(at, number) for at in times}) for each in arguments[0]]
    if expression.name == "RATE":
        return [Timeline(each.instance, _differences(each.minutes)) for each in arguments[0]]
    joins: dict[str, Callable[[list[float]], float]] = {"SUM": sum, "MAX": max}
    return [_joined(arguments, joins.get(expression.name, lambda values: _percentile(values, number)))]


def _divided(one: float, other: float) -> float | None:
    return one / other if other else None


_PAIRS: dict[str, Callable[[float, float], float | None]] = {
    "DIVIDE": _divided,
    "MULTIPLY": operator.mul,
    "SUBTRACT": operator.sub,
}


def _by_instance(
    function: Callable[[float, float], float | None], one: list[Timeline], other: list[Timeline]
) -> list[Timeline]:
    of_instance = {each.instance: each.minutes for each in other}
    found = []
    for each in one:
        if not each.instance:
            found += [(match.instance, each.minutes, match.minutes) for match in other]
        elif (minutes := of_instance.get("", of_instance.get(each.instance))) is not None:
            found.append((each.instance, each.minutes, minutes))
    return [Timeline(instance, _combined(function, *minutes)) for instance, *minutes in found]


def _combined(function: Callable[[float, float], float | None], one: Minutes, other: Minutes) -> dict[int, float]:
    found = {at: function(value, other[at]) for at, value in one.items() if at in other}
    return {at: value for at, value in found.items() if value is not None and math.isfinite(value)}


def _joined(arguments: list[list[Timeline]], join: Callable[[list[float]], float]) -> Timeline:
    """One value of all values of each minute."""
    lines = [each.minutes for timelines in arguments for each in timelines]
    times = sorted(set().union(*lines))
    joined = {at: join([minutes[at] for minutes in lines if at in minutes]) for at in times}
    return Timeline("", {at: value for at, value in joined.items() if math.isfinite(value)})


def _percentile(values: list[float], percentile: float) -> float:
    """The nearest rank."""
    return sorted(values)[min(len(values) - 1, int(len(values) * percentile / 100))]


def _differences(minutes: Minutes) -> dict[int, float]:
    """Of two minutes that follow each other. A total that becomes smaller has begun again, and makes none."""
    found = {at: value - minutes[at - MINUTE_S] for at, value in minutes.items() if at - MINUTE_S in minutes}
    return {at: value for at, value in found.items() if value >= 0}
