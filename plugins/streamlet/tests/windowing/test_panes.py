"""Values between two starts of windows have the same windows, and travel once for all of them."""

from __future__ import annotations

import operator
from collections import Counter
from operator import itemgetter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heron_streamlet import Aggregate, Builder, Items, sliding_window, tumbling_window
from heron_streamlet.windowing.fold import Aggregated, Count, Fold, Reduce
from heron_streamlet.windowing.keyed_operators import WindowFold
from heron_streamlet.windowing.window import SlidingWindow
from heron_streamlet.windowing.window_assignment import Combiner, WindowAssignment, WindowRow
from heron_testing.pipelines.collected import Collect
from heron_testing.pipelines.fed_runs import Feed, Running
from heron_testing.pipelines.simulated_runs import run_simulated


class Listed(Aggregate[int, list[int], list[int]]):
    """Changes its accumulators in place, which an author may do."""

    def zero(self) -> list[int]:
        return []

    def add(self, accumulator: list[int], value: int) -> list[int]:
        accumulator.append(value)
        return accumulator

    def merge(self, left: list[int], right: list[int]) -> list[int]:
        left.extend(right)
        return left

    def result(self, accumulator: list[int]) -> list[int]:
        return sorted(accumulator)


class WithoutZ(Aggregate[str, str, str]):
    """Refuses to merge one value."""

    def zero(self) -> str:
        return ""

    def add(self, accumulator: str, value: str) -> str:
        return accumulator + value

    def merge(self, left: str, right: str) -> str:
        if "z" in (left, right):
            msg = "no z"
            raise ValueError(msg)
        return left + right


FOLDS: dict[str, Fold] = {"count": Count(), "in place": Aggregated(Listed()), "in order": Reduce(operator.add)}


def assigned(window: SlidingWindow, fold: Fold, values: list[tuple[int, int]]) -> tuple[list[WindowRow], int]:
    """The rows of values ``(time, bound)``, and for how many windows they are late."""
    rows: list[WindowRow] = []
    combiner = Combiner("test", fold, lambda: rows.append)
    assignment = WindowAssignment(window, fold.first, rows.append, combiner)
    late = sum(assignment.add("key", 1, time_us, bound_us) for time_us, bound_us in values)
    assert combiner.flush() == []
    return rows, late


@given(
    st.builds(SlidingWindow, st.integers(1, 12), st.integers(1, 5), allowed_lateness_us=st.integers(0, 5)),
    st.lists(st.tuples(st.integers(-20, 40), st.integers(-40, 40)), max_size=30),
    st.sampled_from(["count", "in order"]),
)
def test_each_value_counts_once_in_each_window_that_it_does_not_miss(
    window: SlidingWindow, values: list[tuple[int, int]], fold: str
) -> None:
    """Whatever windows overlap, touch or leave gaps, and whatever is late."""
    wanted: Counter[int] = Counter()
    missed = 0
    for time_us, bound_us in values:
        for start_us in window.starts_of(time_us):
            if start_us + window.size_us + window.allowed_lateness_us <= bound_us:
                missed += 1
            else:
                wanted[start_us] += 1
    rows, late = assigned(window, FOLDS[fold], values)
    windowed, found = WindowFold(window, FOLDS[fold]), Counter[int]()
    for _, start_us, windows, accumulator in rows:
        for start, value in windowed.rows(start_us, windows, accumulator):
            found[start] += value  # type: ignore[operator]  # both folds count ones
    assert found == wanted
    assert late == missed


@pytest.mark.parametrize(("fold", "rows"), [("count", 2), ("in place", 2), ("in order", 3)])
def test_values_of_a_pane_are_one_row_unless_their_order_counts(fold: str, rows: int) -> None:
    """A reduction gets the values of each window in the order in which they came."""
    times = [10, 11, 12, 13, 10]  # of two panes, each with two windows
    found, late = assigned(SlidingWindow(4, 2), FOLDS[fold], [(time_us, -100) for time_us in times])
    assert late == 0
    assert len(found) == rows


@pytest.mark.parametrize("fold", sorted(FOLDS))
def test_windows_of_a_row_do_not_share_an_accumulator(fold: str) -> None:
    """What one window adds must not appear in the next."""
    windowed = WindowFold(SlidingWindow(6, 2), FOLDS[fold])
    state: Any = None
    for start_us, value in ((0, 1), (4, 2)):
        for row in windowed.rows(start_us, 3, FOLDS[fold].first(value)):
            state = windowed.add("key", state, row, lambda *_: None)
    results = {start: windowed.fold.result(value) for start, value in state.items()}
    wanted = {
        "count": {0: 1, 2: 1, 4: 2, 6: 1, 8: 1},
        "in place": {0: [1], 2: [1], 4: [1, 2], 6: [2], 8: [2]},
        "in order": {0: 1, 2: 1, 4: 3, 6: 2, 8: 2},
    }
    assert results == wanted[fold]


def test_a_window_that_fails_takes_no_other_with_it() -> None:
    """The merge of one window fails; the windows that have nothing to merge get their value."""
    builder = Builder()
    source = builder.new_source(Feed("one", "other")).set_num_partitions(2).event_time(itemgetter(0))
    pairs = source.key_by(lambda _: "all", itemgetter(1))
    windows = pairs.aggregate_by_key_and_window(sliding_window(10, 5), WithoutZ()).set_num_partitions(1)
    windows.map(lambda result: (round(result[0].window.start_time), result[1])).to_sink(Collect("results"))
    running = Running(builder)  # two tasks combine, so the task of the windows merges
    running.feed("one", (0, "a"), (20, "b"))
    running.feed("other", (9, "z"), (24, "c"))
    results = running.after(1.0)
    running.feed("one", None)
    running.feed("other", None)
    found = {start: "".join(sorted(result)) for start, result in results + running.after(10.0)}
    (error,) = running.simulation.errors()
    assert "operator 'aggregatebykeyandwindow-1'" in error
    assert found == {-5: "a", 5: "z", 15: "bc", 20: "bc"}


class Uncopied(Aggregate[int, "Total", int]):
    """Has accumulators that cannot be copied."""

    def zero(self) -> Total:
        return Total()

    def add(self, accumulator: Total, value: int) -> Total:
        accumulator.value += value
        return accumulator

    def merge(self, left: Total, right: Total) -> Total:
        left.value += right.value
        return left

    def result(self, accumulator: Total) -> int:
        return accumulator.value


class Total:
    """Cannot be copied."""

    value = 0

    def __deepcopy__(self, memo: object) -> Total:
        msg = "no copy"
        raise TypeError(msg)


def test_an_accumulator_that_cannot_be_copied_is_an_error_of_its_operator() -> None:
    """It concerns the windows of its row; elements in one window need no copy."""
    builder = Builder()
    pairs = builder.new_source(Items([(0, 1), (9, 2)])).event_time(itemgetter(0)).key_by(lambda _: "all", itemgetter(1))
    pairs.aggregate_by_key_and_window(sliding_window(10, 5), Uncopied()).to_sink(Collect("sliding"))
    pairs.aggregate_by_key_and_window(tumbling_window(10), Uncopied()).to_sink(Collect("tumbling"))
    run = run_simulated(builder)
    assert all("operator 'aggregatebykeyandwindow-1'" in error and "no copy" in error for error in run.errors)
    assert run.errors
    assert [value for _, value in run["tumbling"]] == [3]
