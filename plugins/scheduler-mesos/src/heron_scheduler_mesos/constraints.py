"""Constraints on the attributes of agents, in the words of Marathon. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from heron.errors import known

__all__ = ["HOSTNAME", "Constraint", "Place", "breach", "elsewhere", "problem"]

HOSTNAME = "hostname"
"""The field of a constraint that is the name of the agent; every other one is an attribute."""

Constraint = tuple[str, ...]
"""A field, an operator and, for most operators, a value."""


@dataclass(frozen=True, slots=True)
class Place:
    """An agent that has, or may get, a container; `manager`: one that should not share its agent with another."""

    host: str
    attributes: Mapping[str, str] = field(default_factory=dict)
    manager: bool = False

    def value(self, name: str) -> str | None:
        """Return the value of a field; None for an attribute that the agent does not have."""
        return self.host if name == HOSTNAME else self.attributes.get(name)


_Holds = Callable[[str | None, str, Counter[str | None]], bool]

# Of an agent without the attribute only UNLIKE holds, as in Marathon.
_HOLDS: dict[str, _Holds] = {
    "UNIQUE": lambda mine, _value, others: mine is not None and not others[mine],
    "MAX_PER": lambda mine, value, others: mine is not None and others[mine] < int(value),
    "CLUSTER": lambda mine, value, others: mine is not None and (mine == value if value else {*others} <= {mine}),
    "IS": lambda mine, value, _others: mine == value,
    "LIKE": lambda mine, value, _others: mine is not None and re.fullmatch(value, mine) is not None,
    "UNLIKE": lambda mine, value, _others: mine is None or re.fullmatch(value, mine) is None,
}
_WITHOUT_VALUE = frozenset({"UNIQUE"})
_WITH_OPTIONAL_VALUE = frozenset({"CLUSTER"})


def elsewhere(hosts: Sequence[str]) -> list[Constraint]:
    """Return the constraint that excludes hosts; none without hosts."""
    return [(HOSTNAME, "UNLIKE", "|".join(map(re.escape, hosts)))] if hosts else []


def problem(constraint: Constraint) -> str:
    """Return what is wrong with a constraint; "" for a good one."""
    name, operator, *values = (*constraint, "", "")[: max(2, len(constraint))]
    if not name or operator not in _HOLDS:
        return f"is not FIELD, OPERATOR, VALUE with one of the operators {known(_HOLDS)}"
    wanted = {0} if operator in _WITHOUT_VALUE else {0, 1} if operator in _WITH_OPTIONAL_VALUE else {1}
    if len(values) not in wanted:
        return f"has {len(values)} values; {operator} takes {' or '.join(map(str, sorted(wanted)))}"
    if operator == "MAX_PER" and not (values[0].isdecimal() and int(values[0])):
        return "needs a number from 1 on"
    if operator in {"LIKE", "UNLIKE"}:
        try:
            re.compile(values[0])
        except re.error as error:
            return f"is not a regular expression: {error}"
    return ""


def breach(constraints: Sequence[Constraint], place: Place, others: Sequence[Place]) -> str:
    """Return the first constraint that a place breaks, beside the other places of the job; "" if all hold."""
    for name, operator, *values in constraints:
        mine = place.value(name)
        taken = Counter(each.value(name) for each in others)
        if not _HOLDS[operator](mine, values[0] if values else "", taken):
            said = f"is {mine}" if mine is not None else "is not set"
            return f"{' '.join((name, operator, *values))} does not hold: {name} {said}"
    return ""
