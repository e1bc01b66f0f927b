"""What fails in levels is what fails on Heron: windows as a whole, branches and elements alone, all of it counted."""

from __future__ import annotations

import operator
import random
import tempfile
import uuid
from collections.abc import Callable
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heron_streamlet import Builder, Items, Streamlet, tumbling_window
from heron_testing.pipelines.level_runs import LevelRun, plan_of
from heron_testing.pipelines.poisoned_windows import KINDS, POISONED, expected_results, poisoned_windows


def run_of(builder: Builder, cut: int | None = None, slots: int = 2, chance: random.Random | None = None) -> LevelRun:
    with tempfile.TemporaryDirectory() as folder:
        run = LevelRun(plan_of(builder.graph(), slots, uuid.uuid4().hex, cut), Path(folder), chance)
        run.run()
    return run


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=8, deadline=None)
@given(inputs=POISONED, cut=st.sampled_from([None, 1, 3]), slots=st.integers(1, 2), seed=st.integers(0, 5))
def test_a_window_with_a_failure_has_no_result_and_the_others_have_all(
    kind: str, inputs: list[list[Any]], cut: int | None, slots: int, seed: int
) -> None:
    """With a batch for each element the state of failed windows is read from its files, also by other workers."""
    builder = Builder()
    poisoned_windows(builder, inputs, kind).log()
    run = run_of(builder, cut, slots, random.Random(seed) if cut is not None else None)
    results, failing = expected_results(inputs, kind)
    assert sorted(run.lines) == sorted(map(str, results))
    if failing >= 0:
        assert run.failed == failing
        assert bool(run.failures) is bool(failing)


def three_readers(numbers: Streamlet[int]) -> list[Streamlet[int]]:
    return [numbers, numbers, numbers]


def three_clones(numbers: Streamlet[int]) -> list[Streamlet[int]]:
    return numbers.clone(3)


def three_splits(numbers: Streamlet[int]) -> list[Streamlet[int]]:
    return list(numbers.split(dict.fromkeys("abc", lambda _: True)).values())


@pytest.mark.parametrize("branches", [three_readers, three_clones, three_splits])
def test_a_branch_that_fails_costs_no_other_branch(branches: Callable[[Streamlet[int]], list[Streamlet[int]]]) -> None:
    """In whichever order they were defined."""
    builder = Builder()
    first, bad, last = branches(builder.new_source(Items([1, 2, 3])))
    first.map(lambda each: f"first {each}").log()
    bad.map(lambda each: f"bad {1 // (each - 2)}").log()
    last.map(lambda each: f"last {each}").log()
    run = run_of(builder)
    assert sorted(run.lines) == ["bad -1", "bad 1", "first 1", "first 2", "first 3", "last 1", "last 2", "last 3"]
    assert run.failed == 1


def divided(pole: int, number: int) -> int:
    return 1 // (number - pole)


def test_each_operator_that_fails_is_shown_and_all_failures_are_counted() -> None:
    """Ten operators with one function: each has its own first error, as on Heron."""
    builder = Builder()
    numbers = builder.new_source(Items(range(5)))
    for divisor in range(10):
        numbers.map(partial(divided, divisor % 5)).set_name(f"divide-{divisor}").log()
    run = run_of(builder)
    assert run.failed == 10
    assert {each.operator.partition(" ")[0] for each in run.failures} == {f"'divide-{each}'" for each in range(10)}
    assert all("test_failures_in_levels.py, line" in each.place for each in run.failures)


@pytest.mark.parametrize("slots", [1, 2])
def test_a_value_that_is_no_key_fails_alone(slots: int) -> None:
    """Also where one slot has all keys, so that no key has to be looked at to find its slot."""
    builder = Builder()
    pairs = builder.new_source(Items(["a", ["b"], "a"])).event_time(lambda _: 1).key_by(lambda each: each)
    pairs.map(lambda pair: (pair[0], 1)).reduce_by_key(operator.add).log()
    pairs.count_by_key_and_window(tumbling_window(10)).map(itemgetter(1)).log()
    run = run_of(builder, slots=slots)
    assert sorted(run.lines) == ["('a', 1)", "('a', 2)", "2"]
    assert run.failed == 2


class Word(str):
    """Compares and hashes as str does."""

    __slots__ = ()


@pytest.mark.parametrize("slots", [1, 3])
def test_a_key_of_a_subclass_is_the_key_that_it_equals(slots: int) -> None:
    """It has the slot of the plain key."""
    builder = Builder()
    builder.new_source(Items([Word("b"), "a", Word("a"), "b"])).key_by(
        lambda each: each, lambda _: 1
    ).count_by_key().log()
    run = run_of(builder, slots=slots)
    assert sorted(run.lines) == ["('a', 1)", "('a', 2)", "('b', 1)", "('b', 2)"]
    assert run.failed == 0


class Unpicklable:
    """A value that cannot leave its task."""

    def __reduce__(self) -> str:
        msg = "it stays here"
        raise TypeError(msg)


def test_an_accumulator_that_cannot_travel_fails_its_window() -> None:
    """Its values are lost with it, so the others of the window must not come out alone."""
    builder = Builder()
    numbers = builder.new_source(Items([(1, "a"), (2, "a"), (3, "b"), (12, "a")])).event_time(itemgetter(0))
    pairs = numbers.key_by(itemgetter(1), itemgetter(0))
    sums = pairs.reduce_by_key_and_window(tumbling_window(10), lambda *_: Unpicklable())
    sums.map(lambda each: (each[0].key, each[1])).log()
    run = run_of(builder)
    assert sorted(run.lines) == ["('a', 12)", "('b', 3)"]
    assert run.failed == 1
    assert "of a key has no result, because a function failed: TypeError: it stays here" in run.failures[0].message
