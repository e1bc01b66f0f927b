"""Early results: each is a part of the final one, and the final ones are as without them."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heron.api.api_constants import TOPOLOGY_TICK_TUPLE_FREQ_SECS as TICK
from heron_simulator import Simulation
from heron_streamlet import (
    Builder,
    Items,
    Reader,
    StageContext,
    Streamlet,
    Window,
    WindowedStreamlet,
    WindowResult,
    session_window,
    tumbling_window,
)
from heron_streamlet.columns import sum_of
from heron_streamlet.topology.topology_compiler import compile_topology
from heron_testing.fake_clock import FakeClock
from heron_testing.pipelines.collected import COLLECTED, Collect
from heron_testing.pipelines.early_parts import EVENTS, WINDOWS, Gathered, check_growth, comparable, numbered, parts
from heron_testing.pipelines.fed_runs import Feed, Running
from heron_testing.pipelines.random_chains import Partitions
from heron_testing.pipelines.reference_engine import results_of


class Drip(Partitions):
    """Partitions that give one element at a time."""

    def open(self, partition: str, position: object, context: StageContext) -> Reader[Any]:
        reader = super().open(partition, position, context)
        read = reader.read
        reader.read = lambda limit: read(min(limit, 1))  # type: ignore[method-assign]
        return reader


def run_in_time(builder: Builder) -> dict[str, list[Any]]:
    """What the sinks receive when a second passes with each turn."""
    COLLECTED.clear()
    topology = compile_topology("pipeline", builder.graph(), {})
    with Simulation(topology, clock=FakeClock()) as simulation:
        while simulation.state.name == "RUNNING":
            simulation.advance(1.0)
        assert simulation.errors() == ()
    return dict(COLLECTED)


@pytest.mark.parametrize("name", WINDOWS)
@settings(max_examples=60, deadline=None)
@given(inputs=st.lists(EVENTS, min_size=1, max_size=3), lag=st.sampled_from([0, 5, 100]), middle=st.booleans())
def test_early_results_are_parts_of_the_final_ones(
    name: str, inputs: list[list[Any]], lag: float, middle: bool
) -> None:
    """The stream of final results is as without them, and each early result has more than the one before."""
    builder = Builder()
    events = builder.new_source(Drip(numbered(inputs))).event_time(operator.itemgetter(0), lag=lag)
    events = events.repartition(2) if middle else events
    pairs = events.key_by(operator.itemgetter(1), operator.itemgetter(2))
    gathered = pairs.aggregate_by_key_and_window(WINDOWS[name], Gathered()).set_num_partitions(2)
    gathered.map(lambda each: parts(WindowResult(*each, True))).to_sink(Collect("finals"))
    gathered.early(1).map(parts).to_sink(Collect("early"))
    received = run_in_time(builder)
    meant = results_of(builder.graph())
    early = received.get("early", [])
    assert comparable(received.get("finals", [])) == comparable(meant["sink-1"])
    assert comparable(each for each in early if each[4]) == comparable(meant["sink-1"])
    check_growth(early)


def short(results: list[Any]) -> list[tuple[Any, ...]]:
    """Key, begin of the window in seconds, value, and whether it is final."""
    return [(each.window.key, each.window.window.start_us // 1_000_000, each.result, each.final) for each in results]


def counted(windowed: Callable[[Streamlet[Any]], WindowedStreamlet[Any, Any, Any]]) -> Running:
    """Counts `(time, key)` of the partition a; early results each second."""
    builder = Builder()
    events = builder.new_source(Feed("a")).event_time(operator.itemgetter(0))
    windowed(events).early(1).to_sink(Collect("results"))
    return Running(builder)


def test_a_window_gives_early_results_when_it_has_changed() -> None:
    """Long before it ends, once for each second with changes, and only for the keys of these."""
    running = counted(lambda events: events.key_by(lambda each: each[1]).count_by_key_and_window(tumbling_window(3600)))
    running.feed("a", (1, "x"), (2, "y"), (2, "x"))
    assert sorted(short(running.after(1.0))) == [("x", 0, 2, False), ("y", 0, 1, False)]
    assert running.after(5.0) == []
    running.feed("a", (2, "y"))
    assert short(running.after(2.0)) == [("y", 0, 2, False)]
    running.feed("a", (3600, "z"))
    assert sorted(short(running.after(2.0))) == [("x", 0, 2, True), ("y", 0, 2, True), ("z", 3600, 1, False)]


def test_what_a_stage_before_combines_is_not_held_back() -> None:
    """The watermark does not grow, so nothing else would send it."""
    running = counted(
        lambda events: events.repartition(2).key_by(lambda each: each[1]).count_by_key_and_window(tumbling_window(60))
    )
    running.feed("a", (7, "x"))
    assert short(running.after(1.5)) == [("x", 0, 1, False)]
    running.feed("a", (7, "x"), (3, "x"))
    assert short(running.after(1.5)) == [("x", 0, 3, False)]


def test_allowed_lateness_goes_on_with_early_results() -> None:
    """The value at the end of the window does not wait for late elements."""
    window = tumbling_window(10).allow_lateness(100)
    running = counted(lambda events: events.key_by(lambda each: each[1]).count_by_key_and_window(window))
    running.feed("a", (1, "x"), (12, "y"))
    assert sorted(short(running.after(1.0))) == [("x", 0, 1, False), ("y", 10, 1, False)]
    running.feed("a", (2, "x"))
    assert short(running.after(1.0)) == [("x", 0, 2, False)]
    running.feed("a", (200, "z"))
    assert sorted(short(running.after(1.0)))[:1] == [("x", 0, 2, True)]


def test_sessions_that_become_one_give_one_early_result() -> None:
    """An early result of each is there before; its window is a part of the later one."""
    running = counted(lambda events: events.key_by(lambda each: each[1]).count_by_key_and_window(session_window(10)))
    running.feed("a", (0, "x"), (15, "x"))
    assert sorted(short(running.after(1.0))) == [("x", 0, 1, False), ("x", 15, 1, False)]
    running.feed("a", (8, "x"), (22, "x"))
    assert short(running.after(1.0)) == [("x", 0, 4, False)]


def test_an_element_that_is_too_late_changes_no_window() -> None:
    """Its source was idle, and its session is closed."""
    builder = Builder()
    events = builder.new_source(Feed("a", "b")).event_time(operator.itemgetter(0), idle_after=5)
    pairs = events.key_by(operator.itemgetter(1))
    pairs.count_by_key_and_window(session_window(2)).early(1).to_sink(Collect("results"))
    running = Running(builder)
    running.feed("b", (3, "x"))
    running.after(10.0)
    running.feed("a", (40, "x"))
    running.after(10.0)
    running.feed("b", (5, "x"))
    assert running.after(2.0) == []
    assert running.simulation.errors() == ()


def test_a_window_of_all_elements_gives_early_results() -> None:
    """They have a `Window` in place of a key and window."""
    running = counted(lambda events: events.map(lambda each: each[0]).reduce_by_window(tumbling_window(60), max))
    running.feed("a", (3, ""), (8, ""))
    assert running.after(1.0) == [WindowResult(Window(0, 60_000_000), 8, final=False)]


def test_windows_by_the_clock_give_early_results() -> None:
    """Without event time as well."""
    builder = Builder()
    sums = builder.new_source(Feed("a")).key_by(lambda _: "all")
    sums.reduce_by_key_and_window(tumbling_window(10), operator.add).early(2).to_sink(Collect("results"))
    running = Running(builder)
    running.feed("a", 1, 2)
    assert short(running.after(5.0)) == [("all", 1_000_000, 3, False)]
    running.feed("a", 4)
    assert short(running.after(7.0)) == [("all", 1_000_000, 7, False), ("all", 1_000_000, 7, True)]


def test_two_readers_have_their_own_times() -> None:
    """One for a display, one for a store."""
    builder = Builder()
    events = builder.new_source(Feed("a")).event_time(operator.itemgetter(0)).key_by(operator.itemgetter(1))
    counts = events.count_by_key_and_window(tumbling_window(3600))
    counts.early(1).map(lambda each: ("display", each.result)).to_sink(Collect("results"))
    counts.early(60).map(lambda each: ("store", each.result)).to_sink(Collect("results"))
    running = Running(builder)
    received = []
    for second in range(10):
        running.feed("a", (second, "x"))
        received += running.after(1.0)
    assert received == [("display", 1), ("store", 1), *(("display", count) for count in range(2, 11))]


def test_columns_give_early_results() -> None:
    """Accumulators of columns are folded as others."""
    builder = Builder()
    events = builder.new_source(Feed("a")).event_time(operator.itemgetter(0)).map(lambda each: each[1:])
    prices = events.to_columns({"page": pa.string(), "price": pa.int64()})
    totals = prices.aggregate_by_key_and_window("page", tumbling_window(60), total=sum_of("price"))
    totals.early(1).to_sink(Collect("results"))
    running = Running(builder)
    running.feed("a", (1, "x", 5), (1, "x", 7))
    assert short(running.after(1.0)) == [("x", 0, {"total": 12}, False)]
    running.feed("a", (1, "x", 1))
    assert short(running.after(1.0)) == [("x", 0, {"total": 13}, False)]


@pytest.mark.parametrize("failing", ["early", "final"])
def test_a_failure_on_one_side_leaves_the_other(failing: str) -> None:
    """Final results do not depend on what happens with early ones, nor these on them."""

    def fails(name: str) -> Callable[[Any], Any]:
        return lambda each: 1 // (name != failing) and (name, each[1])

    builder = Builder()
    events = builder.new_source(Items([(1, "x"), (2, "y")])).event_time(operator.itemgetter(0))
    counts = events.key_by(operator.itemgetter(1)).count_by_key_and_window(tumbling_window(10))
    counts.map(fails("final")).set_name("on-final").to_sink(Collect("results"))
    counts.early(1).map(fails("early")).set_name("on-early").to_sink(Collect("results"))
    COLLECTED.clear()
    with Simulation(compile_topology("pipeline", builder.graph(), {}), clock=FakeClock()) as simulation:
        simulation.run_until_finished()
        errors = simulation.errors()
    other = "final" if failing == "early" else "early"
    assert COLLECTED["results"] == [(other, 1), (other, 1)]
    assert f"operator 'on-{failing}' (test_early_results.py:" in errors[0]


def test_an_aggregate_that_fails_early_fails_with_its_operator() -> None:
    """The window goes on, and may have a result later."""

    class Few(Gathered):
        def result(self, accumulator: list[object]) -> list[object]:
            return [1 // (len(accumulator) - 1)]

    builder = Builder()
    events = builder.new_source(Feed("a")).event_time(operator.itemgetter(0)).key_by(operator.itemgetter(1))
    events.aggregate_by_key_and_window(tumbling_window(60), Few()).early(1).to_sink(Collect("results"))
    running = Running(builder)
    running.feed("a", (1, "x"))
    assert running.after(1.0) == []
    running.feed("a", (1, "x"))
    assert short(running.after(1.0)) == [("x", 0, [1], False)]
    (error,) = running.simulation.errors()
    assert "operator 'aggregatebykeyandwindow-1' (test_early_results.py:" in error


def test_a_stage_without_early_results_is_as_before() -> None:
    """No tick, and the bolt with the fewest calls for each row."""

    def components(*, early: bool) -> list[tuple[str, bool]]:
        builder = Builder()
        events = builder.new_source(Feed("a")).event_time(operator.itemgetter(0)).repartition(2)
        counts = events.key_by(operator.itemgetter(1)).count_by_key_and_window(tumbling_window(60))
        counts.log()
        if early:
            counts.early(1).log()
        built = compile_topology("pipeline", builder.graph(), {}).build()
        return [(str(each.entry).rpartition(":")[2], TICK in each.config) for each in built.components]

    assert components(early=False) == [("SourceSpout", False), ("StageBolt", False), ("WindowStageBolt", False)]
    assert components(early=True) == [("SourceSpout", False), ("StageBolt", True), ("KeyedStageBolt", True)]
