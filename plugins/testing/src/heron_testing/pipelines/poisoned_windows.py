"""Windows whose functions fail for some elements, and what they mean: all elements of a window, or no result.

The same programs run on every engine. The reference runs them with functions that do not fail; the windows with a
poisoned element are then left out.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from heron_streamlet import (
    Aggregate,
    Builder,
    Streamlet,
    count_window,
    session_window,
    sliding_window,
    tumbling_window,
)
from heron_testing.pipelines.random_chains import Partitions
from heron_testing.pipelines.reference_engine import results_of

__all__ = ["KINDS", "POISON", "POISONED", "expected_results", "poisoned_windows", "refusing"]

POISON = -1
"""The value for which functions fail."""

POISONED = st.lists(
    st.lists(st.tuples(st.integers(0, 40), st.sampled_from("ab"), st.integers(-1, 6)), max_size=14),
    min_size=1,
    max_size=2,
)
"""Source partitions: time in seconds, key and value; -1 is poison."""

Values = tuple[int, ...]


def joined_values(one: Values, other: Values) -> Values:
    """All values of both."""
    return one + other


def refusing(one: Values, other: Values) -> Values:
    """All values of both, unless there is poison."""
    if POISON in one + other:
        msg = "poison"
        raise ValueError(msg)
    return one + other


class Gathering(Aggregate[Values, list[int], Values]):
    """All values; accumulators are changed in place. With `refuses` it fails for poison."""

    def __init__(self, *, refuses: bool) -> None:
        self.refuses = refuses

    def zero(self) -> list[int]:
        """`Aggregate.zero`."""
        return []

    def add(self, accumulator: list[int], value: Values) -> list[int]:
        """`Aggregate.add`."""
        accumulator.extend(value)
        if self.refuses:
            refusing(value, ())
        return accumulator

    def merge(self, left: list[int], right: list[int]) -> list[int]:
        """`Aggregate.merge`."""
        left.extend(right)
        return left

    def result(self, accumulator: list[int]) -> Values:
        """`Aggregate.result`."""
        return tuple(accumulator)


class Resulting(Gathering):
    """Fails when the result is made."""

    def add(self, accumulator: list[int], value: Values) -> list[int]:
        """`Aggregate.add`."""
        accumulator.extend(value)
        return accumulator

    def result(self, accumulator: list[int]) -> Values:
        """`Aggregate.result`."""
        return refusing(tuple(accumulator), ()) if self.refuses else tuple(accumulator)


class Merging(Gathering):
    """Fails when accumulators are merged, and when the result is made."""

    add = Resulting.add
    result = Resulting.result

    def merge(self, left: list[int], right: list[int]) -> list[int]:
        """`Aggregate.merge`."""
        return list(refusing(tuple(left), tuple(right))) if self.refuses else left + right


Kind = Callable[[Streamlet[Any], Callable[[Values, Values], Values], bool], Streamlet[Any]]

KINDS: dict[str, Kind] = {
    "reduce, tumbling": lambda pairs, function, _: pairs.reduce_by_key_and_window(tumbling_window(10), function),
    "reduce, sliding": lambda pairs, function, _: pairs.reduce_by_key_and_window(sliding_window(10, 4), function),
    "reduce, session": lambda pairs, function, _: pairs.reduce_by_key_and_window(session_window(5), function),
    "reduce, whole": lambda pairs, function, _: pairs.map(operator.itemgetter(1)).reduce_by_window(
        tumbling_window(10), function
    ),
    "early": lambda pairs, function, _: (
        pairs.reduce_by_key_and_window(tumbling_window(10), function)
        .early(1)
        .filter(lambda each: each.final)
        .map(lambda each: (each.window, each.result))
    ),
    "add": lambda pairs, _, refuses: pairs.aggregate_by_key_and_window(tumbling_window(10), Gathering(refuses=refuses)),
    "add, panes": lambda pairs, _, refuses: pairs.aggregate_by_key_and_window(
        sliding_window(10, 5), Gathering(refuses=refuses)
    ),
    "add, session": lambda pairs, _, refuses: pairs.aggregate_by_key_and_window(
        session_window(5), Gathering(refuses=refuses)
    ),
    "merge": lambda pairs, _, refuses: pairs.aggregate_by_key_and_window(
        sliding_window(10, 5), Merging(refuses=refuses)
    ),
    "result": lambda pairs, _, refuses: pairs.aggregate_by_key_and_window(
        session_window(5), Resulting(refuses=refuses)
    ),
    "join": lambda pairs, function, _: pairs.join(
        pairs.filter(lambda pair: pair[1][0] > 2), tumbling_window(10), function
    ),
    "count": lambda pairs, function, _: pairs.reduce_by_key_and_window(count_window(3, 2), function),
}
"""A windowed operator each; `function` or an aggregate with `refuses` fails for poison."""

ONE_PARTITION = {"count"}
"""Their windows depend on the order of arrival."""


def poisoned_windows(
    builder: Builder, inputs: list[list[Any]], kind: str, tasks: int = 1, most: int = 1000, *, refuses: bool = True
) -> Streamlet[Any]:
    """The results of a kind of windows; `most` elements of a partition are read at a time."""
    inputs = inputs[:1] if kind in ONE_PARTITION else inputs
    source = builder.new_source(Partitions(inputs, most)).set_num_partitions(min(tasks, len(inputs)))
    pairs = source.event_time(operator.itemgetter(0), lag=100).key_by(lambda each: each[1], lambda each: (each[2],))
    results = KINDS[kind](pairs, refusing if refuses else joined_values, refuses).set_name("windows")
    if kind not in ("reduce, whole", "early"):
        results.set_num_partitions(tasks)
    return results.map(comparable).set_name("results")


def expected_results(inputs: list[list[Any]], kind: str) -> tuple[list[Any], int]:
    """The results of the windows that have no poison, sorted; and the number of windows that fail."""
    builder = Builder()
    poisoned_windows(builder, inputs, kind, refuses=False).consume(print)
    results: list[tuple[str, list[int]]] = results_of(builder.graph())["results"]
    lonely = kind.startswith(("reduce", "early", "count"))  # a function of two values is not called for one
    failing = {place for place, values in results if POISON in values and not (lonely and len(values) == 1)}
    if kind == "count":  # all windows of a key have one place
        return sorted(each for each in results if POISON not in each[1]), -1
    return sorted(each for each in results if each[0] not in failing), len(failing)


def comparable(result: tuple[Any, Values]) -> tuple[str, list[int]]:
    """A result as values that can be sorted."""
    return repr(result[0]), sorted(result[1])
