"""Places of failures: what is equal, and when a failure is only counted."""

from __future__ import annotations

import pytest

from heron.instance.user.failure_places import CountedFailure, FailurePlace, FailurePlaces


def raised(text: str, file: str = "topology.py") -> Exception:
    """Compiles a text, runs it, and returns its exception."""
    try:
        exec(compile(text, file, "exec"))  # noqa: S102  # our own text
    except Exception as error:
        return error
    pytest.fail("nothing was raised")


def test_equal_lines_are_one_place_also_if_they_were_compiled_twice() -> None:
    """A component may compile the text of a rule for each tuple."""
    places = FailurePlaces()
    found = {places.of("process", raised("raise ValueError")) for _ in range(3)}
    assert len(found) == 1
    others = [
        places.of("process_tick", raised("raise ValueError")),
        places.of("process", raised("raise KeyError")),
        places.of("process", raised("\nraise ValueError")),
        places.of("process", raised("raise ValueError", "other.py")),
        places.of("process", ValueError()),
    ]
    assert len({*found, *others}) == 6


def test_the_frame_of_the_caller_may_be_left_out() -> None:
    """Two calls of the engine that lead to one line of the author are one place."""

    def fails() -> None:
        raise ValueError

    places, found = FailurePlaces(), list[FailurePlace]()
    for by_caller in (True, False):
        try:
            fails()
        except ValueError as error:
            found.append(places.of("process", error, by_caller=by_caller))
        try:
            fails()
        except ValueError as error:
            found.append(places.of("process", error, by_caller=by_caller))
    assert found[0] is found[1]
    assert len(set(found)) == 3


def test_a_place_counts_once_two_failures_were_shown() -> None:
    """The second one says that the output has only the first."""
    place = FailurePlace()
    assert not place.counts()
    place.counted = CountedFailure("process: ValueError")
    place.counted.count = 1
    assert not place.counts()
    place.counted.count = 2
    assert place.counts()
    assert place.counted.count == 3


def test_places_are_bounded() -> None:
    """An author may make code without end; a place that was forgotten is made again."""
    places = FailurePlaces()
    first = places.of("process", raised("raise ValueError"))
    for line in range(1, 1_001):
        places.of("process", raised("\n" * line + "raise ValueError"))
    assert places.of("process", raised("raise ValueError")) is not first
