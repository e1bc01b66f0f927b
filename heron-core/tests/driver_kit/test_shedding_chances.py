"""Which rows the policies keep, and that what is kept stands for all."""

from __future__ import annotations

import random

import pytest

from heron.driver_kit.shedding_chances import KeyChances, PriorityChances, uniform_chances
from heron.errors import EmitError
from heron.planner.key_group import key_group

ROWS = 4000


@pytest.mark.parametrize("share", [0.5, 0.1])
def test_sums_of_weights_are_unbiased(share: float) -> None:
    """Horvitz and Thompson: each kept row counts as the reciprocal of its probability. The mean of 100 tasks is exact
    within four standard errors."""
    totals = []
    for task_id in range(1, 101):
        chance = uniform_chances(task_id)
        totals.append(sum(1 / share for _ in range(ROWS) if chance() < share))
    error = (ROWS * (1 - share) / share / len(totals)) ** 0.5
    assert sum(totals) / len(totals) == pytest.approx(ROWS, abs=4 * error)


def test_a_task_sheds_the_same_rows_in_each_run() -> None:
    """A run can be repeated."""
    first, second = uniform_chances(3), uniform_chances(3)
    assert [first() for _ in range(9)] == [second() for _ in range(9)]


def test_a_smaller_share_keeps_a_part_of_the_same_keys() -> None:
    """A key that stays has all its rows, in each task."""
    chance, other = KeyChances(single=True), KeyChances(single=True)
    keys = [f"key {number}" for number in range(1000)]
    kept = {share: {key for key in keys if chance(key) < share} for share in (0.1, 0.3, 0.9)}
    assert kept[0.1] < kept[0.3] < kept[0.9]
    assert kept[0.3] == {key for key in keys if other(key) < 0.3}
    assert len(kept[0.3]) == pytest.approx(300, abs=60)


def test_kept_keys_are_of_all_key_groups() -> None:
    """Otherwise shedding would leave whole tasks without work."""
    chance = KeyChances(single=False)
    kept = [(number, "x") for number in range(20_000) if chance((number, "x")) < 0.1]
    assert {key_group(key, 64) for key in kept} == set(range(64))


def test_a_key_that_cannot_be_hashed_is_refused_as_in_a_grouping() -> None:
    """The author sees the line of the emit."""
    with pytest.raises(EmitError):
        KeyChances(single=True)(["a list"])


def test_low_priorities_go_first() -> None:
    """Half of the rows have priority 2. With a share of a half exactly they stay, and no others."""
    chance = PriorityChances(lambda given: given, random.Random(1).random)
    chances = random.Random(2)
    for _ in range(2000):
        chance(2 if chances.random() < 0.5 else 1)
    chance.follow(0.4)
    rows = [2 if chances.random() < 0.5 else 1 for _ in range(2000)]
    kept = [(row, chance.of_last) for row in rows if chance(row) < 0.4]
    assert {row for row, _ in kept} == {2}
    assert sum(1 / probability for _, probability in kept) == pytest.approx(1000, rel=0.1)


def test_a_priority_that_is_kept_in_part_has_a_weight_and_those_above_have_none() -> None:
    """The weight of a row is that of its own class."""
    chance = PriorityChances(lambda given: given, random.Random(1).random)
    for number in range(1000):
        chance(number % 4)
    chance.follow(0.375)
    weights: dict[int, set[float]] = {}
    for number in range(1000):
        if chance(number % 4) < 0.375:
            weights.setdefault(number % 4, set()).add(1 / chance.of_last)
    assert weights == {3: {1.0}, 2: {2.0}}


def test_nothing_is_shed_while_the_share_is_one() -> None:
    """Also a priority that is lower than all before it stays."""
    chance = PriorityChances(lambda given: given, random.Random(1).random)
    for number in range(100):
        assert chance(-number) < 1.0
        chance.follow(1.0)
    assert chance.of_last == 1.0


def test_a_priority_that_is_no_number_is_refused() -> None:
    """NaN has no rank either."""
    chance = PriorityChances(lambda given: given, random.Random(1).random)
    for wrong in ("high", None, float("nan")):
        with pytest.raises(EmitError, match="not a number"):
            chance(wrong)
