"""Operators in the simulator, with a clock that the test controls."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

import pytest

from heron_simulator import Simulation
from heron_streamlet import (
    Aggregate,
    Builder,
    Config,
    Generator,
    Items,
    KeyedWindow,
    StageContext,
    Transformer,
    Window,
    session_window,
    sliding_window,
    tumbling_window,
)
from heron_streamlet.topology.topology_compiler import compile_topology
from heron_testing.fake_clock import FakeClock
from heron_testing.pipelines.collected import COLLECTED, Collect
from heron_testing.pipelines.fed_runs import Feed, Running
from heron_testing.pipelines.simulated_runs import run_simulated

ATLEAST = Config().set_delivery_semantics(Config.ATLEAST_ONCE)


@pytest.fixture
def counts() -> Builder:
    """Counts the elements of two partitions per 10 s of event time; the elements are their event times."""
    builder = Builder()
    timed = builder.new_source(Feed("a", "b")).event_time(lambda time: time, lag=1, idle_after=30)
    windows = timed.key_by(lambda _: "all").count_by_key_and_window(tumbling_window(10))
    windows.map(lambda pair: (pair[0].window.end_us // 1_000_000, pair[1])).to_sink(Collect("results"))
    windows.late.map(lambda pair: ("late", pair[1])).to_sink(Collect("results"))
    return builder


def test_a_window_closes_when_all_partitions_have_passed_it(counts: Builder) -> None:
    """A window has one final result."""
    running = Running(counts)
    running.feed("a", 1, 5, 14)
    assert running.after(1.0) == []
    running.feed("b", 3, 11)
    assert running.after(1.0) == [(10, 3)]


def test_a_partition_without_data_does_not_hold_windows_for_ever(counts: Builder) -> None:
    """After `idle_after` the others go on; what then comes late of it is visible."""
    running = Running(counts)
    running.feed("b", 3)
    running.after(15.0)
    running.feed("a", 4, 14)
    assert running.after(10.0) == []
    assert running.after(20.0) == [(10, 2)]
    running.feed("b", 5)
    assert running.after(1.0) == []
    running.feed("b", 16, 5)
    assert running.after(1.0) == [("late", 5)]


def test_windows_close_by_the_clock_when_nothing_comes(counts: Builder) -> None:
    """The last window of a quiet evening has its result the same evening."""
    running = Running(counts)
    running.feed("a", 4)
    running.feed("b", 4)
    assert running.after(29.0) == []
    assert running.after(10.0) == [(10, 2)]


def test_a_window_that_fails_is_lost_alone() -> None:
    """The windows of other keys, and later windows of the key, have their results."""
    builder = Builder()
    pairs = builder.new_source(Feed("a")).event_time(operator.itemgetter(0)).key_by(operator.itemgetter(1))
    counts = pairs.count_by_key_and_window(tumbling_window(60))
    failing = counts.map(lambda pair: 1 // (pair[0].key != "a" or pair[0].window.start_us > 0))
    failing.to_sink(Collect("results"))
    running = Running(builder)
    running.feed("a", (0, "a"), (0, "b"), (70, "a"))
    assert running.after(1.0) == [1]
    running.feed("a", (140, "c"))
    assert running.after(1.0) == [1]
    (error,) = running.simulation.errors()
    assert "operator 'map-1' (test_operators.py:" in error


def test_windows_that_fail_at_the_end_are_lost_alone() -> None:
    """The other windows have their results, also those that are combined again, and sinks complete."""
    builder = Builder()
    pairs = builder.new_source(Items("abcd")).event_time(lambda _: 1).key_by(lambda each: each)
    counts = pairs.count_by_key_and_window(tumbling_window(60))
    kept = counts.map(lambda pair: 1 // (pair[0].key not in "bc"))
    kept.reduce_by_window(tumbling_window(120), operator.add).to_sink(Collect("results"))
    run = run_simulated(builder)
    assert run["results"] == [(Window(0, 120_000_000), 2)]
    (error,) = run.errors
    assert "the component raised OperatorError: operator 'map-1' (test_operators.py:" in error


@pytest.mark.parametrize("combined_at_most", [10_000, 2])
def test_a_key_that_is_refused_is_lost_alone(monkeypatch: pytest.MonkeyPatch, combined_at_most: int) -> None:
    """A frozenset can be hashed, so it is combined like a key; it must not take other keys with it when they leave."""
    monkeypatch.setattr("heron_streamlet.windowing.window_assignment.COMBINED_AT_MOST", combined_at_most)
    builder = Builder()
    elements = ["a", frozenset("x"), "b", frozenset("y"), "c", "a"]
    pairs = builder.new_source(Items(elements)).event_time(lambda _: 1).key_by(lambda each: each)
    pairs.count_by_key_and_window(tumbling_window(60)).map(lambda pair: (pair[0].key, pair[1])).to_sink(Collect("all"))
    run = run_simulated(builder)
    assert run["all"] == [("a", 2), ("b", 1), ("c", 1)]
    assert "operator 'keyby-1' (test_operators.py:" in run.errors[0]
    assert "frozenset" in run.errors[0]


def test_windows_by_the_clock_need_no_event_time() -> None:
    """They are what heronpy has: by the arrival at the task that reduces them."""
    builder = Builder()
    pairs = builder.new_source(Feed("a")).key_by(lambda _: "all")
    pairs.reduce_by_key_and_window(tumbling_window(10), operator.add).to_sink(Collect("results"))
    running = Running(builder)
    running.feed("a", 1, 2)
    assert running.after(5.0) == []
    running.feed("a", 4)
    window = Window(1_000_000_000_000, 1_000_010_000_000)
    assert running.after(7.0) == [(KeyedWindow("all", window), 7)]
    assert running.after(30.0) == []


def test_sessions_and_joins_by_the_clock() -> None:
    """Each input of a join keeps its side."""
    builder = Builder()
    left = builder.new_source(Feed("a", "b")).filter(lambda each: each < 10).key_by(lambda _: "all")
    right = left.filter(lambda pair: pair[1] % 2).set_name("odd")
    joined = left.outer_left_join(right, tumbling_window(10), lambda one, other: (one, other))
    joined.map(lambda pair: pair[1]).to_sink(Collect("results"))
    sessions = left.reduce_by_key_and_window(session_window(2), operator.add)
    sessions.map(lambda pair: ("session", pair[1])).to_sink(Collect("results"))
    running = Running(builder)
    running.feed("a", 2, 4)
    assert sorted(running.after(9.0), key=repr) == [("session", 6)]
    assert sorted(running.after(3.0)) == [(2, None), (4, None)]
    running.feed("b", 3)
    assert sorted(running.after(12.0), key=repr) == [("session", 3), (3, 3)]


def test_a_clock_that_is_set_back_opens_no_window_again() -> None:
    """Elements count in the newest window until the clock is there again."""
    builder = Builder()
    pairs = builder.new_source(Feed("a")).key_by(lambda _: "all")
    pairs.reduce_by_key_and_window(tumbling_window(10), operator.add).to_sink(Collect("results"))
    running = Running(builder)
    running.feed("a", 1)
    assert len(running.after(12.0)) == 1
    clock: Any = running.simulation._clock
    clock._wall_s = clock.wall_s() - 100
    running.feed("a", 5)
    assert running.after(5.0) == []
    assert [value for _, value in running.after(120.0)] == [5]


class Mean(Aggregate[float, tuple[float, int], float]):
    """The mean of the values."""

    def zero(self) -> tuple[float, int]:
        return 0.0, 0

    def add(self, accumulator: tuple[float, int], value: float) -> tuple[float, int]:
        return accumulator[0] + value, accumulator[1] + 1

    def merge(self, left: tuple[float, int], right: tuple[float, int]) -> tuple[float, int]:
        return left[0] + right[0], left[1] + right[1]

    def result(self, accumulator: tuple[float, int]) -> float:
        return accumulator[0] / accumulator[1]


@pytest.mark.parametrize("config", [None, ATLEAST], ids=["at most once", "at least once"])
def test_an_aggregate_has_accumulators_and_a_result(config: Config | None) -> None:
    """Accumulators that were filled before the shuffle are merged; at least once each record is acked."""
    builder = Builder()
    readings = builder.new_source(Items([(1, "x", 2.0), (2, "x", 4.0), (3, "y", 5.0)]))
    timed = readings.event_time(operator.itemgetter(0)).key_by(operator.itemgetter(1), operator.itemgetter(2))
    means = timed.aggregate_by_key_and_window(sliding_window(20, 10), Mean())
    means.map(lambda pair: (pair[0].key, pair[0].window.start_us, pair[1])).to_sink(Collect("means"))
    assert run_simulated(builder, config)["means"] == [
        *(("x", -10_000_000, 3.0), ("x", 0, 3.0), ("y", -10_000_000, 5.0), ("y", 0, 5.0))
    ]


def test_more_keys_than_are_combined_are_counted_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is combined leaves the task when it becomes too much."""
    monkeypatch.setattr("heron_streamlet.windowing.window_assignment.COMBINED_AT_MOST", 100)
    builder = Builder()
    events = builder.new_source(Items([(number / 100, number % 240) for number in range(480)]))
    timed = events.event_time(operator.itemgetter(0)).key_by(operator.itemgetter(1))
    timed.count_by_key_and_window(tumbling_window(10)).map(lambda pair: pair[1]).to_sink(Collect("counts"))
    assert run_simulated(builder)["counts"] == [2] * 240


class Numbered(Transformer[str, str]):
    """Writes its partition in front of each element."""

    def setup(self, context: StageContext) -> None:
        self.context = context

    def transform(self, element: str) -> Iterable[str]:
        yield f"{self.context.name} {self.context.partition}/{self.context.partitions} {element}"

    def close(self) -> None:
        COLLECTED.setdefault("closed", []).append(self.context.partition)


def test_a_transformer_is_set_up_and_closed_in_each_task() -> None:
    """So that it can hold a connection."""
    builder = Builder()
    words = builder.new_source(Items(["a", "b"])).repartition(2, lambda word, tasks: ord(word) % tasks)
    words.transform(Numbered()).set_name("numbered").to_sink(Collect("words"))
    run = run_simulated(builder)
    assert run["words"] == ["numbered 0/2 b", "numbered 1/2 a"]
    assert sorted(COLLECTED["closed"]) == [0, 1]


def test_a_partition_outside_the_tasks_is_an_error() -> None:
    """The function counts from 0."""
    builder = Builder()
    builder.new_source(Items([1])).repartition(2, lambda _, tasks: tasks).to_sink(Collect("results"))
    (error,) = run_simulated(builder).errors
    assert "operator 'repartition-1'" in error
    assert "the partition 2 is not an integer from 0 to 1" in error


class Countdown(Generator[int]):
    """Counts down, with pauses."""

    def setup(self, context: StageContext) -> None:
        self.left = 6

    def get(self) -> int | None:
        self.left -= 1
        if self.left == 0:
            raise StopIteration
        return None if self.left % 2 else self.left


def test_a_generator_may_pause_and_end() -> None:
    """None is no element now."""
    builder = Builder()
    builder.new_source(Countdown()).to_sink(Collect("numbers"))
    assert run_simulated(builder)["numbers"] == [2, 4]


@pytest.mark.parametrize("apart", [1, 2])
def test_a_result_that_fails_does_not_undo_the_state(apart: int) -> None:
    """Whether the failing function shares the stage of the count, or not, later results are the same."""
    builder = Builder()
    counts = builder.new_source(Items(["a"] * 5)).key_by(lambda word: word).count_by_key()
    results = counts.map(lambda pair: (pair[1], 6 // (pair[1] - 3))).set_num_partitions(apart)
    results.to_sink(Collect("results"))
    assert run_simulated(builder)["results"] == [(1, -3), (2, -6), (4, 6), (5, 3)]


def test_elements_that_fail_in_a_source_do_not_delay_others() -> None:
    """The engine calls a spout that raises less and less often; one bad line in three would stop a pipeline."""
    builder = Builder()
    lines = builder.new_source(Items(["x" if number % 3 else "1" for number in range(300)]))
    lines.map(int).to_sink(Collect("results"))
    run = run_simulated(builder)
    assert run["results"] == [1] * 100
    assert any("operator 'map-1'" in error for error in run.errors)
    assert not any("called again" in error for error in run.errors)


def test_the_late_metric_counts_windows() -> None:
    """It counts whether the late stream is read or not."""
    builder = Builder()
    timed = builder.new_source(Items([100, 1])).event_time(lambda time: time).key_by(lambda _: "all")
    timed.count_by_key_and_window(sliding_window(10, 5)).to_sink(Collect("results"))
    topology = compile_topology("pipeline", builder.graph(), {})
    with Simulation(topology, clock=FakeClock()) as simulation:
        simulation.run_until_finished()
        assert simulation.read_metrics("source-1-to-keyby-1")["late"] == 2
