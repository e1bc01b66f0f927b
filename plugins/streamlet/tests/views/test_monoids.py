"""Monoids of views: however values are divided between batches, live spans and readers, the result is the same."""

from __future__ import annotations

import pickle
from collections import Counter
from decimal import Decimal
from functools import reduce
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heron.errors import StoreError, UsageError
from heron_streamlet.views import (
    BloomFilter,
    Count,
    CountMin,
    Frequent,
    HyperLogLog,
    Max,
    Min,
    Monoid,
    Sum,
    TopK,
    View,
)

INTS = st.integers(-(2**70), 2**70)
PARTS = st.lists(st.lists(INTS, max_size=8), max_size=6)
TEXTS = st.lists(st.lists(st.sampled_from("abcdefghij"), max_size=12), max_size=6)


def in_parts(monoid: Monoid[Any, Any, Any], parts: list[list[Any]]) -> Any:  # noqa: ANN401
    """The result, where each part travels as a pickle and as the bytes of a store before it is merged."""
    travelled = []
    for part in parts:
        accumulator = reduce(monoid.add, part, monoid.zero())
        accumulator = pickle.loads(pickle.dumps(accumulator))
        travelled.append(monoid.decode(monoid.encode(accumulator)))
    return monoid.result(reduce(monoid.merge, reversed(travelled), monoid.zero()))


@given(parts=PARTS)
def test_plain_monoids_are_exact(parts: list[list[int]]) -> None:
    values = [value for part in parts for value in part]
    assert in_parts(Count(), parts) == len(values)
    assert in_parts(Sum[int](), parts) == sum(values)
    assert in_parts(Min[int](), parts) == min(values, default=None)
    assert in_parts(Max[int](), parts) == max(values, default=None)
    assert in_parts(TopK[int](3), parts) == sorted(values, reverse=True)[:3]


@given(parts=st.lists(st.lists(st.tuples(INTS, st.text(max_size=3)), max_size=5), max_size=4))
def test_values_may_be_tuples(parts: list[list[tuple[int, str]]]) -> None:
    """So the greatest values come with what they belong to."""
    values = [value for part in parts for value in part]
    assert in_parts(TopK[tuple[int, str]](4), parts) == sorted(values, reverse=True)[:4]
    assert in_parts(Min[tuple[int, str]](), parts) == min(values, default=None)


def test_decimals_stay_exact() -> None:
    """Amounts of money have no rounding."""
    parts = [[Decimal("0.10")] * 3, [Decimal("0.20")], []]
    assert in_parts(Sum[Decimal](), parts) == Decimal("0.50")


@given(parts=TEXTS)
def test_sketches_of_few_values_are_exact(parts: list[list[str]]) -> None:
    """Few values fit into every sketch."""
    counts = Counter(value for part in parts for value in part)
    assert in_parts(HyperLogLog(), parts) == len(counts)
    assert in_parts(Frequent(3), parts) == sorted(counts.items(), key=lambda each: (-each[1], each[0]))[:3]
    found = in_parts(CountMin(), parts)
    assert {value: found.of(value) for value in "abcdefghijk"} == {value: counts[value] for value in "abcdefghijk"}
    members = in_parts(BloomFilter(1000, 0.0001), parts)
    assert {value for value in "abcdefghijk" if value in members} == set(counts)


def test_sketches_of_many_values_are_near() -> None:
    """The errors are those that the docstrings promise; hashes are fixed, so the test is too."""
    parts = [[f"user-{number}" for number in range(start, 100_000, 7)] for start in range(7)]
    assert in_parts(HyperLogLog(12), parts) == pytest.approx(100_000, rel=3 * 0.016)
    members = in_parts(BloomFilter(100_000, 0.01), parts)
    assert all(f"user-{number}" in members for number in range(0, 100_000, 997))
    assert sum(f"nobody-{number}" in members for number in range(10_000)) < 200
    counts = in_parts(CountMin(0.001, 0.99), [*parts, ["user-5"] * 500])
    assert 501 <= counts.of("user-5") <= 501 + 100
    (often, number), *_ = in_parts(Frequent(1, 6), [*parts, ["user-5"] * 9000])
    assert often == "user-5"
    assert 9001 <= number <= 9001 + 109_000 * 3.5 / 2**6


@pytest.mark.parametrize(
    "make",
    [
        lambda: TopK(0),
        lambda: HyperLogLog(22),
        lambda: BloomFilter(0),
        lambda: BloomFilter(10, 1.0),
        lambda: CountMin(error=0),
        lambda: Frequent(0),
        lambda: View("a b", Count()),
        lambda: View("", Count()),
        lambda: View("v", Count),  # type: ignore[arg-type]
        lambda: View("v", Count(), span=0),
        lambda: View("v", Count(), keep=-1),
    ],
)
def test_wrong_arguments_are_refused(make: Any) -> None:  # noqa: ANN401
    with pytest.raises(UsageError, match=r"not|from"):
        make()


def test_a_value_that_no_store_can_keep_is_named() -> None:
    """A class of the author would need a pickle, and readers must not run what others wrote."""
    with pytest.raises(UsageError, match="complex"):
        Max[Any]().encode(1j)


def test_values_of_another_monoid_are_refused() -> None:
    """A changed pipeline on an old view must not read a count as a sum."""
    view, other = View("clicks", Count()), View("clicks", Sum[int]())
    with pytest.raises(StoreError, match=r"'clicks'.*'count'.*'sum'"):
        other.decode(view.encode(3))
    with pytest.raises(StoreError, match="damaged"):
        view.decode(view.encode(3)[:-1] + b"\xc1")
