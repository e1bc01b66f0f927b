"""Aggregates of weighted values: Horvitz and Thompson's estimators, with their variances.

A value is ``(weight, value)``: the weight w is the reciprocal of the probability with which the element was kept. A sum
over the kept elements of w·x is unbiased, and so is w·(w - 1)·x² for its variance, if elements are kept independently
(Horvitz and Thompson, "A Generalization of Sampling Without Replacement", 1952). All of them are monoids, so windows
and views take them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, TypeVar

from heron.author_text import short_text
from heron.errors import UsageError
from heron_streamlet.sampling.estimate import Estimate
from heron_streamlet.views.monoids import PlainMonoid

__all__ = ["CountEstimate", "DistinctEstimate", "FrequentEstimate", "KeptCount", "MeanEstimate", "SumEstimate"]

V = TypeVar("V")

Weighted = tuple[float, V]
"""The weight of an element, and its value."""

Sums = tuple[float, ...]


class _OfSums(PlainMonoid[Weighted[Any], Sums, Estimate]):
    """An estimate whose accumulator is some sums."""

    _zero: ClassVar[Sums] = (0.0, 0.0)

    def zero(self) -> Sums:
        """`Aggregate.zero`."""
        return self._zero

    def merge(self, left: Sums, right: Sums) -> Sums:
        """`Aggregate.merge`."""
        return tuple(map(float.__add__, left, right))

    def result(self, accumulator: Sums) -> Estimate:
        """`Aggregate.result`."""
        return Estimate(*accumulator)


class CountEstimate(_OfSums):
    """How many elements there were."""

    word = "count-estimate"

    def add(self, accumulator: Sums, value: Weighted[Any]) -> Sums:
        """`Aggregate.add`."""
        weight, (count, variance) = value[0], accumulator
        return count + weight, variance + weight * (weight - 1.0)


class SumEstimate(_OfSums):
    """The sum of numbers."""

    word = "sum-estimate"

    def add(self, accumulator: Sums, value: Weighted[Any]) -> Sums:
        """`Aggregate.add`."""
        (weight, number), (total, variance) = value, accumulator
        return total + weight * number, variance + weight * (weight - 1.0) * number * number


class MeanEstimate(_OfSums):
    """The mean of numbers: the ratio of the estimates of sum and count, whose variance is linearised."""

    word = "mean-estimate"
    _zero = (0.0,) * 5

    def add(self, accumulator: Sums, value: Weighted[Any]) -> Sums:
        """`Aggregate.add`."""
        (weight, number), (count, total, ones, numbers, squares) = value, accumulator
        part = weight * (weight - 1.0)
        return (
            count + weight,
            total + weight * number,
            ones + part,
            numbers + part * number,
            squares + part * number * number,
        )

    def result(self, accumulator: Sums) -> Estimate:
        """`Aggregate.result`; 0 without elements."""
        count, total, ones, numbers, squares = accumulator
        if not count:
            return Estimate(0.0)
        mean = total / count
        return Estimate(mean, (squares - 2 * mean * numbers + mean * mean * ones) / (count * count))


class _ByValue(PlainMonoid[Weighted[Any], dict[Any, Sums], Any]):
    """An estimate for each value. The accumulator takes as much room as there are different values."""

    def zero(self) -> dict[Any, Sums]:
        """`Aggregate.zero`."""
        return {}

    def encode(self, accumulator: dict[Any, Sums]) -> bytes:
        """`Monoid.encode`."""
        return super().encode([(value, *sums) for value, sums in accumulator.items()])  # type: ignore[arg-type]  # plain

    def decode(self, data: bytes) -> dict[Any, Sums]:
        """`Monoid.decode`."""
        entries: Iterable[Any] = super().decode(data)
        return {value: (first, second) for value, first, second in entries}


class FrequentEstimate(_ByValue):
    """The `k` most frequent values with the estimates of their counts, the most frequent first.

    Raises:
        UsageError: when `k` is not an integer from 1 to 100,000.
    """

    word = "frequent-estimate"
    _MOST = 100_000

    def __init__(self, k: int = 10) -> None:
        if type(k) is not int or not 1 <= k <= self._MOST:
            msg = f"FrequentEstimate({short_text(k, 60)}): not an integer from 1 to {self._MOST}"
            raise UsageError(msg)
        self.k = k

    def add(self, accumulator: dict[Any, Sums], value: Weighted[Any]) -> dict[Any, Sums]:
        """`Aggregate.add`."""
        weight, each = value
        count, variance = accumulator.get(each, (0.0, 0.0))
        accumulator[each] = count + weight, variance + weight * (weight - 1.0)
        return accumulator

    def merge(self, left: dict[Any, Sums], right: dict[Any, Sums]) -> dict[Any, Sums]:
        """`Aggregate.merge`."""
        for value, (count, variance) in right.items():
            before = left.get(value, (0.0, 0.0))
            left[value] = before[0] + count, before[1] + variance
        return left

    def result(self, accumulator: dict[Any, Sums]) -> list[tuple[Any, Estimate]]:
        """`Aggregate.result`; equal counts are in the order of their first elements."""
        ordered = sorted(accumulator.items(), key=lambda each: -each[1][0])
        return [(value, Estimate(*sums)) for value, sums in ordered[: self.k]]


class DistinctEstimate(_ByValue):
    """How many different values there were, behind a shed ``by-key`` whose key is the value.

    Each kept value stands for as many as its weight. Elements that are kept one by one do not show how many values were
    never seen, so behind another policy the result is too small.
    """

    word = "distinct-estimate"

    def add(self, accumulator: dict[Any, Sums], value: Weighted[Any]) -> dict[Any, Sums]:
        """`Aggregate.add`."""
        weight, each = value
        least = min(weight, accumulator.get(each, (weight,))[0])  # it was kept with the largest of its probabilities
        accumulator[each] = least, least * (least - 1.0)
        return accumulator

    def merge(self, left: dict[Any, Sums], right: dict[Any, Sums]) -> dict[Any, Sums]:
        """`Aggregate.merge`."""
        for value, (weight, _) in right.items():
            self.add(left, (weight, value))
        return left

    def result(self, accumulator: dict[Any, Sums]) -> Estimate:
        """`Aggregate.result`."""
        weights = accumulator.values()
        return Estimate(sum(each[0] for each in weights), sum(each[1] for each in weights))


class KeptCount(_OfSums):
    """The number of elements of a key that was kept whole, with the weight of the key."""

    word = "kept-count"

    def add(self, accumulator: Sums, value: Weighted[Any]) -> Sums:
        """`Aggregate.add`."""
        return max(accumulator[0], value[0]), accumulator[1] + 1.0

    def merge(self, left: Sums, right: Sums) -> Sums:
        """`Aggregate.merge`."""
        return max(left[0], right[0]), left[1] + right[1]

    def result(self, accumulator: Sums) -> Any:  # noqa: ANN401  # a weighted number
        """`Aggregate.result`."""
        return accumulator[0], round(accumulator[1])
