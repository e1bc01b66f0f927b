"""Accumulators in panes give the results that the state of each key gives, wherever they are when a window closes."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heron_streamlet import Aggregate, Builder, Items, tumbling_window
from heron_streamlet.failures import OperatorError
from heron_streamlet.plan.stages import Outlet, Stage, fuse
from heron_streamlet.runtime.keyed_stage import KeyedStage
from heron_streamlet.runtime.paned_stage import PanedStage
from heron_streamlet.runtime.stage_code import StageCode
from heron_streamlet.runtime.stage_host import Send, StageHost
from heron_streamlet.windowing.event_time import END_OF_TIME_US
from heron_streamlet.windowing.failed_window import failed_window
from heron_streamlet.windowing.fold import Aggregated, Fold, Reduce
from heron_streamlet.windowing.keyed_operators import WindowFold
from heron_streamlet.windowing.window import SlidingWindow
from heron_testing.pipelines.collected import Collect


class Host(StageHost):
    """Remembers what a task counts and reports."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage, {}, combines=False)
        self.component: Any = None
        self.missed = 0
        self.reported: list[OperatorError] = []

    def row(self, outlet: Outlet, values: str) -> str:
        return values

    def sender(self, outlet: Outlet) -> Send:
        return lambda _: None

    def late(self, count: int) -> None:
        self.missed += count

    def failed(self, error: OperatorError) -> None:
        self.reported.append(error)

    def log(self, element: object) -> None: ...


class States(dict[Any, Any]):
    """The states of a task."""

    put = dict.__setitem__
    remove = dict.__delitem__


class Listed(Aggregate[int, list[int], tuple[int, ...]]):
    """Changes accumulators in place; may refuse to merge a nine."""

    def __init__(self, refused: int = 0) -> None:
        self.refused = refused

    def zero(self) -> list[int]:
        return []

    def add(self, accumulator: list[int], value: int) -> list[int]:
        return [*accumulator, value]

    def merge(self, left: list[int], right: list[int]) -> list[int]:
        if self.refused in (*left, *right):
            raise ValueError(self.refused)
        left.extend(right)
        return left

    def result(self, accumulator: list[int]) -> tuple[int, ...]:
        return tuple(sorted(accumulator))


paned = partial(PanedStage, at_most=100)


class Run:
    """A stage with its results and what it reports."""

    def __init__(
        self, kind: Callable[..., Any], window: SlidingWindow, refused: int = 0, fold: Fold | None = None
    ) -> None:
        builder = Builder()
        pairs: Any = builder.new_source(Items([])).event_time(lambda _: 0).key_by(lambda _: 0)
        pairs.count_by_key_and_window(tumbling_window(1)).to_sink(Collect("results"))
        stage = fuse(builder.graph()).stages[1]
        self.host = Host(stage)
        self.states = States()
        windows = WindowFold(window, fold or Aggregated(Listed(refused)))
        self.stage = kind(windows, StageCode(stage, self.host), self.states)
        self.results: list[Any] = []
        self.stage.follow = lambda element, time_us, _: self.results.append((element, time_us))

    def receive(self, key: str, start_us: int, windows: int, value: int) -> None:
        self.stage.receive((key, start_us, windows, [value]))

    def reach(self, watermark_us: int) -> None:
        for error in self.stage.reach(watermark_us):
            self.host.failed(error)

    def outcome(self) -> tuple[list[Any], int, list[str]]:
        """Results, windows that rows missed, and windows that failed."""
        self.reach(END_OF_TIME_US)
        return sorted(self.results), self.host.missed, sorted(map(str, self.host.reported))


WINDOWS = st.builds(SlidingWindow, st.just(12), st.sampled_from([3, 4, 5, 12, 15]), allowed_lateness_us=st.just(2))


@st.composite
def works(draw: st.DrawFn) -> tuple[SlidingWindow, list[tuple[str, Any]]]:
    """A window, and what a task gets: rows, watermarks and checkpoints."""
    window = draw(WINDOWS)
    values = st.tuples(st.sampled_from("ab"), st.integers(0, 15), st.integers(1, 3))
    rows = values.map(lambda each: row_of(window, *each))
    marks = st.integers(0, 30).map(lambda time_us: ("reach", time_us))
    return window, draw(st.lists(st.one_of(rows, rows, marks, st.just(("save", None))), min_size=15, max_size=30))


def row_of(window: SlidingWindow, key: str, time_us: int, value: int) -> tuple[str, Any]:
    starts = window.starts_of(time_us)
    return ("row", (key, starts[0], len(starts), value)) if starts else ("save", None)


@settings(max_examples=300)
@given(works(), st.sampled_from([0, 3]))
def test_panes_and_states_have_the_same_outcome(
    work: tuple[SlidingWindow, list[tuple[str, Any]]], refused: int
) -> None:
    """Also when a checkpoint moves accumulators to the state between two rows, and when rows are late.

    A fold may fail in a pane, when a window closes, or in the state.
    """
    window, steps = work
    in_states, in_panes = Run(KeyedStage, window, refused), Run(paned, window, refused)
    for what, values in steps:
        for run in (in_states, in_panes):
            if what == "row":
                run.receive(*values)
            elif what == "reach":
                run.reach(values)
        if what == "save":
            in_panes.stage.move_to_state()
    assert in_panes.outcome() == in_states.outcome()


@pytest.mark.parametrize("here", [True, False], ids=["here", "before the shuffle"])
def test_a_window_that_has_failed_gets_nothing_of_other_panes(*, here: bool) -> None:
    """It has the result of all its values, or none."""
    run = Run(paned, SlidingWindow(10, 5), refused=3)
    run.receive("a", -5, 2, 1)
    if here:
        run.receive("a", 0, 2, 2)
        run.receive("a", 0, 2, 3)
    else:
        run.stage.receive(("a", 0, -2, failed_window(ValueError(3))))
    results, _, failed = run.outcome()
    assert [(element[0].window.start_us, element[1]) for element, _ in results] == [(-5, (1,))]
    assert len(failed) == 2


def test_a_window_has_what_its_state_and_its_panes_have() -> None:
    """A checkpoint does not slow down keys that go on: only what it has saved is in their states."""
    run = Run(paned, SlidingWindow(10, 5))
    run.receive("a", 0, 2, 1)
    run.stage.move_to_state()
    run.receive("a", 5, 2, 10)
    run.receive("b", 5, 2, 100)
    assert run.states == {"a": {0: [1], 5: [1]}}
    results, _, _ = run.outcome()
    assert run.states == {}
    assert [(element[0].key, element[1]) for element, _ in results] == [
        *(("a", (1,)), ("a", (1, 10)), ("a", (10,))),
        *(("b", (100,)), ("b", (100,))),
    ]


def test_older_values_are_on_the_left() -> None:
    """Those of the state came before those of the panes."""
    run = Run(paned, SlidingWindow(10, 10), fold=Reduce(operator.add))
    run.stage.receive(("a", 0, 1, "a"))
    run.stage.move_to_state()
    run.stage.receive(("a", 0, 1, "b"))
    run.stage.receive(("a", 0, 1, "c"))
    assert [element[1] for element, _ in run.outcome()[0]] == ["abc"]


def test_too_many_accumulators_move_to_the_state() -> None:
    """A state may be on disk because it is larger than the memory."""
    run = Run(paned, SlidingWindow(10, 10))
    run.stage = PanedStage(run.stage.operator, run.stage.code, run.states, at_most=2)
    for key in "abc":
        run.receive(key, 0, 1, 1)
    assert sorted(run.states) == ["a", "b", "c"]


def test_keys_of_other_tasks_are_forgotten() -> None:
    """After an update without checkpoints their tasks count from there on."""
    run = Run(paned, SlidingWindow(10, 10))
    for key in "abc":
        run.receive(key, 0, 1, 1)
    run.stage.keep({"b"}.__contains__)
    assert [element[0].key for element, _ in run.outcome()[0]] == ["b"]
