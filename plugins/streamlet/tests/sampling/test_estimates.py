"""Aggregates of weighted values: unbiased, with honest intervals, and the same however values are divided."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from functools import reduce
from statistics import fmean
from typing import Any

import pytest

from heron.errors import UsageError
from heron_streamlet.sampling import (
    CountEstimate,
    DistinctEstimate,
    Estimate,
    FrequentEstimate,
    MeanEstimate,
    SumEstimate,
)
from heron_streamlet.views import Monoid

VALUES = [float(number % 17) for number in range(2000)]
EXACT: dict[type[Monoid[Any, Any, Any]], float] = {
    CountEstimate: len(VALUES),
    SumEstimate: sum(VALUES),
    MeanEstimate: fmean(VALUES),
}


def kept(seed: int, shares: Callable[[int], float]) -> list[tuple[float, float]]:
    """The weighted values that are left; the share may change while they arrive."""
    chance = random.Random(seed)
    return [(1 / shares(number), value) for number, value in enumerate(VALUES) if chance.random() < shares(number)]


def of(monoid: Monoid[Any, Any, Any], values: list[Any]) -> Any:  # noqa: ANN401
    return monoid.result(reduce(monoid.add, values, monoid.zero()))


@pytest.mark.parametrize("made", EXACT)
@pytest.mark.parametrize("shares", [lambda _: 0.1, lambda number: 0.5 if number < 1000 else 0.05], ids=["one", "two"])
def test_the_mean_of_many_samples_is_exact_and_95_of_100_intervals_hold_it(
    made: type[Monoid[Any, Any, Any]], shares: Callable[[int], float]
) -> None:
    """Two shares within one window are the case in which a factor for the whole would be wrong."""
    found: list[Estimate] = [of(made(), kept(seed, shares)) for seed in range(300)]
    spread = fmean(each.variance for each in found) ** 0.5
    assert fmean(found) == pytest.approx(EXACT[made], abs=4 * spread / len(found) ** 0.5)
    holding = sum(each.low <= EXACT[made] <= each.high for each in found)
    assert 0.9 <= holding / len(found) <= 0.99


def test_keys_that_are_kept_whole_show_how_many_there_were() -> None:
    """Each kept key stands for as many keys as its weight; how often it occurs makes no difference."""
    found = []
    for seed in range(300):
        chance = random.Random(seed)
        positions = [chance.random() for _ in range(500)]
        values = [(10.0, key) for key in range(500) if positions[key] < 0.1 for _ in range(1 + key % 5)]
        found.append(of(DistinctEstimate(), values))
    assert fmean(found) == pytest.approx(500, abs=4 * (500 * 9 / len(found)) ** 0.5)
    assert 0.9 <= sum(each.low <= 500 <= each.high for each in found) / len(found) <= 0.99


def test_the_most_frequent_values_have_corrected_counts() -> None:
    """A value that was kept rarely may have occurred more often than one that was kept always."""
    found = of(FrequentEstimate(2), [(1.0, "a")] * 5 + [(4.0, "b")] * 2 + [(1.0, "c")])
    assert found == [("b", 8.0), ("a", 5.0)]
    assert (found[0][1].variance, found[1][1].variance) == (24.0, 0.0)
    with pytest.raises(UsageError, match="not an integer"):
        FrequentEstimate(0)


@pytest.mark.parametrize(
    "monoid", [CountEstimate(), SumEstimate(), MeanEstimate(), FrequentEstimate(3), DistinctEstimate()]
)
def test_parts_can_be_stored_and_merged_in_any_way(monoid: Monoid[Any, Any, Any]) -> None:
    """Views keep the accumulators of a batch and of the live side in a store."""
    values = [(2.0, 3.0), (1.0, 4.0), (8.0, 3.0), (1.0, 5.0)]
    whole = of(monoid, values)
    for cut in range(len(values) + 1):
        left, right = (reduce(monoid.add, part, monoid.zero()) for part in (values[:cut], values[cut:]))
        stored = monoid.decode(monoid.encode(right))
        assert monoid.result(monoid.merge(pickle.loads(pickle.dumps(left)), stored)) == whole


def test_without_weights_the_results_are_exact() -> None:
    """A batch over the archive sheds nothing, and is merged with a live side that does."""
    found = of(SumEstimate(), [(1.0, value) for value in VALUES])
    assert (found, found.margin, found.low) == (sum(VALUES), 0.0, sum(VALUES))
    assert of(MeanEstimate(), []) == 0.0


def test_an_estimate_is_a_number_that_shows_its_interval() -> None:
    """It travels between tasks, and people read it in logs."""
    found = Estimate(120.0, 25.0)
    assert str(found) == "120 ± 9.8"
    assert str(Estimate(120.0)) == "120"
    again = pickle.loads(pickle.dumps(found))
    assert (again, again.variance) == (120.0, 25.0)
    assert found + 1 == 121.0
