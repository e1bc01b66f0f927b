"""Constraints in the words of Marathon."""

from __future__ import annotations

import pytest

from heron.errors import ConfigError
from heron_scheduler_mesos.constraints import Constraint, Place, breach, elsewhere, problem
from heron_scheduler_mesos.scheduler import MesosScheduler

A = Place("a", {"rack": "r1", "disk": "ssd"})
B = Place("b", {"rack": "r1"})
C = Place("c", {"rack": "r2"})
BARE = Place("bare")


@pytest.mark.parametrize(
    ("constraint", "place", "others", "holds"),
    [
        (("hostname", "UNIQUE"), A, [B, C], True),
        (("hostname", "UNIQUE"), A, [B, A], False),
        (("rack", "UNIQUE"), BARE, [], False),
        (("rack", "MAX_PER", "2"), A, [B], True),
        (("rack", "MAX_PER", "2"), A, [B, B, C], False),
        (("rack", "CLUSTER", "r1"), A, [C], True),
        (("rack", "CLUSTER", "r2"), A, [], False),
        (("rack", "CLUSTER"), A, [], True),
        (("rack", "CLUSTER"), A, [B], True),
        (("rack", "CLUSTER"), C, [A, B], False),
        (("disk", "IS", "ssd"), A, [], True),
        (("disk", "IS", "ssd"), B, [], False),
        (("rack", "LIKE", "r[1-3]"), C, [], True),
        (("rack", "LIKE", "r"), C, [], False),
        (("rack", "LIKE", ".*"), BARE, [], False),
        (("disk", "UNLIKE", "ssd"), A, [], False),
        (("disk", "UNLIKE", "ssd"), BARE, [], True),
    ],
)
def test_constraints_mean_what_they_mean_in_marathon(
    constraint: Constraint, place: Place, others: list[Place], holds: bool
) -> None:
    """Of an agent without the attribute only UNLIKE holds."""
    assert problem(constraint) == ""
    assert (breach([constraint], place, others) == "") is holds


def test_a_breach_names_the_constraint_and_the_value() -> None:
    """The status of a container without a place shows it."""
    both = [("hostname", "LIKE", "."), ("rack", "IS", "r2")]
    assert breach(both, A, []) == "rack IS r2 does not hold: rack is r1"
    assert breach([("gpu", "IS", "1")], A, []) == "gpu IS 1 does not hold: gpu is not set"


@pytest.mark.parametrize(
    ("constraint", "why"),
    [
        (("rack",), "is not FIELD, OPERATOR, VALUE"),
        (("rack", "EQUALS", "r1"), "'CLUSTER'"),
        (("rack", "IS"), "has 0 values; IS takes 1"),
        (("hostname", "UNIQUE", "1"), "has 1 values; UNIQUE takes 0"),
        (("rack", "MAX_PER", "0"), "needs a number from 1 on"),
        (("rack", "LIKE", "("), "is not a regular expression"),
    ],
)
def test_a_wrong_constraint_is_an_error_of_the_profile(constraint: Constraint, why: str) -> None:
    """It would otherwise keep containers waiting for ever."""
    assert why in problem(constraint)
    with pytest.raises(ConfigError, match="constraints"):
        MesosScheduler.open({"constraints": [list(constraint)]})


def test_blocked_agents_are_declined() -> None:
    """A name is a name, not a pattern; every other agent is good."""
    (constraint,) = elsewhere(("a.example", "b"))
    assert problem(constraint) == ""
    assert breach([constraint], Place("a.example"), [])
    assert not breach([constraint], Place("axexample"), [])
    assert elsewhere(()) == []
