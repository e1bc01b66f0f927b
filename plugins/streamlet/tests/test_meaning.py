"""Random pipelines over random input, in any number of tasks and order of turns, against the reference."""

from __future__ import annotations

import operator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heron_streamlet import Builder, Config, Items, tumbling_window
from heron_testing.pipelines.collected import Collect
from heron_testing.pipelines.random_chains import CHAINS, RECORDS, STATEFUL, WINDOWED, chained, timed_source
from heron_testing.pipelines.reference_engine import results_of
from heron_testing.pipelines.simulated_runs import run_simulated


@settings(max_examples=80, deadline=None)
@given(
    inputs=st.lists(RECORDS, min_size=1, max_size=3),
    steps=CHAINS,
    lag=st.sampled_from([0, 4, 100]),
    tasks=st.integers(1, 3),
    most=st.sampled_from([1, 3, 1000]),
    seed=st.integers(0, 5),
)
def test_a_chain_means_the_same_in_any_number_of_tasks(
    inputs: list[list[Any]], steps: list[tuple[str, int]], lag: float, tasks: int, most: int, seed: int
) -> None:
    """Partitions, turns of the tasks, watermarks and fusion change when results appear, and never what they are."""
    builder = Builder()
    stream = chained(timed_source(builder, inputs, lag, tasks, most), steps)
    stream.to_sink(Collect("results"))
    check(builder, seed)


@pytest.mark.parametrize("name", [name for name in STATEFUL if name in ("tumbling", "sliding", "session", "join")])
@settings(max_examples=20, deadline=None)
@given(
    inputs=st.lists(RECORDS, min_size=1, max_size=3),
    lag=st.sampled_from([0, 4]),
    tasks=st.integers(1, 3),
    most=st.sampled_from([1, 1000]),
)
def test_late_elements_are_the_same_in_any_number_of_tasks(
    name: str, inputs: list[list[Any]], lag: float, tasks: int, most: int
) -> None:
    """An element is late by the order of its source partition alone."""
    builder = Builder()
    results: Any = STATEFUL[name](timed_source(builder, inputs, lag, tasks, most))
    results.late.to_sink(Collect("late"))
    results.to_sink(Collect("results"))
    again = results.late.count_by_key_and_window(tumbling_window(20))
    again.to_sink(Collect("late counts"))
    again.late.to_sink(Collect("late again"))
    check(builder, 1)


@settings(max_examples=80, deadline=None)
@given(
    inputs=st.lists(RECORDS, min_size=1, max_size=2),
    steps=st.lists(st.tuples(st.sampled_from(WINDOWED), st.integers(1, 2)), min_size=2, max_size=3),
    lag=st.sampled_from([0, 4]),
    most=st.sampled_from([1, 3]),
)
def test_windows_of_windows_miss_nothing(
    inputs: list[list[Any]], steps: list[tuple[str, int]], lag: float, most: int
) -> None:
    """A session, and a window with a lateness, give results that are older than the watermark which closed them."""
    builder = Builder()
    chained(timed_source(builder, inputs, lag, 1, most), steps).to_sink(Collect("results"))
    check(builder, 1)


def test_streams_meet_themselves() -> None:
    """In a union, in a join, and with two event times."""
    builder = Builder()
    source = builder.new_source(Items([(5, "a", 100), (1, "b", 3), (9, "a", 50)]))
    source.union(source).to_sink(Collect("union"))
    timed = source.event_time(operator.itemgetter(0)).key_by(operator.itemgetter(1))
    timed.join(timed, tumbling_window(10), lambda one, other: (one, other)).to_sink(Collect("join"))
    other = source.event_time(operator.itemgetter(2)).key_by(operator.itemgetter(1), lambda _: None)
    other.reduce_by_key_and_window(tumbling_window(7), lambda *_: None).to_sink(Collect("other time"))
    check(builder, 1)


def check(builder: Builder, seed: int) -> None:
    graph = builder.graph()
    expected = results_of(graph)
    run = run_simulated(builder, Config(), seed=seed)
    assert run.errors == ()
    for node in graph.nodes:
        if node.operator.word == "sink":
            name = node.operator.sink.name  # type: ignore[attr-defined]  # a Collect
            assert run[name] == sorted(expected[node.name], key=repr)
