"""Random pipelines over random input, in any number of tasks and order of turns, against the reference."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heron_streamlet import (
    Builder,
    Config,
    Items,
    Source,
    StageContext,
    Streamlet,
    count_window,
    session_window,
    sliding_window,
    tumbling_window,
)
from heron_streamlet.sources import Reader
from pipelines.reference_engine import results_of
from pipelines.simulated_runs import Collect, run_simulated

KEYS = [None, True, 0, 2.5, "", "ключ", "b", ("a", 1)]
RECORDS = st.lists(st.tuples(st.integers(-30, 60), st.sampled_from(KEYS), st.integers(-3, 3)), max_size=25)
"""Time in seconds, key and value: late, equal, out of order, skewed, or none at all."""

Step = Callable[[Streamlet[Any]], Streamlet[Any]]


class Partitions(Source[Any]):
    """Several lists, each of which is a partition."""

    def __init__(self, lists: list[list[Any]]) -> None:
        self.lists = lists

    def partitions(self, tasks: int) -> list[str]:
        return [str(number) for number in range(len(self.lists))]

    def open(self, partition: str, position: object, context: StageContext) -> Reader[Any]:
        return Items(self.lists[int(partition)]).open("0", position, context)


def pairs(stream: Streamlet[Any]) -> Streamlet[Any]:
    """Pairs of a key and a number, whatever the elements are."""
    return stream.map(lambda each: (str(each[0]), number_of(each[1])))


def number_of(value: object) -> int:
    return value if isinstance(value, int) else len(str(value))


STATELESS: dict[str, Step] = {
    "map": lambda stream: stream.map(lambda each: (each[0], each[1])),
    "filter": lambda stream: stream.filter(lambda each: number_of(each[1]) % 3 != 1),
    "flat_map": lambda stream: stream.flat_map(lambda each: [each] * (number_of(each[1]) % 3)),
    "key_by": lambda stream: stream.key_by(lambda each: number_of(each[1]), lambda each: each[1]),
    "clone": lambda stream: operator.methodcaller("union", stream.clone(2)[1])(stream.clone(1)[0]),
    "split": lambda stream: stream.split({"few": lambda each: number_of(each[1]) < 2})["few"],
}
STATEFUL: dict[str, Step] = {
    "distinct": lambda stream: pairs(stream).distinct(),
    "count_by_key": lambda stream: pairs(stream).count_by_key(),
    "map_with_state": lambda stream: pairs(stream).map_with_state(lambda: 0, lambda n, _: (n + 1, n)),
    "count window": lambda stream: (
        pairs(stream).map(lambda p: (p[0], 1)).reduce_by_key_and_window(count_window(3, 2), operator.add)
    ),
    "tumbling": lambda stream: pairs(stream).reduce_by_key_and_window(tumbling_window(10), operator.add),
    "sliding": lambda stream: pairs(stream).count_by_key_and_window(sliding_window(10, 4).allow_lateness(3)),
    "sparse": lambda stream: pairs(stream).count_by_key_and_window(sliding_window(3, 7)),
    "session": lambda stream: pairs(stream).reduce_by_key_and_window(session_window(5), operator.add),
    "whole": lambda stream: pairs(stream).map(lambda p: p[1]).reduce_by_window(tumbling_window(10), max),
    "join": lambda stream: pairs(stream).outer_join(
        pairs(stream.filter(lambda each: number_of(each[1]) > 0)), tumbling_window(10), lambda one, other: (one, other)
    ),
}
STEPS = STATELESS | STATEFUL
RUNNING = {"distinct", "count_by_key", "map_with_state", "count window"}
"""Their results depend on the order in which elements of several tasks arrive, when a later step keeps state."""


@settings(max_examples=150, deadline=None)
@given(
    inputs=st.lists(RECORDS, min_size=1, max_size=3),
    steps=st.lists(st.tuples(st.sampled_from(sorted(STEPS)), st.integers(1, 3)), max_size=5),
    lag=st.sampled_from([0, 4, 100]),
    tasks=st.integers(1, 3),
    seed=st.integers(0, 5),
)
def test_a_chain_means_the_same_in_any_number_of_tasks(
    inputs: list[list[Any]], steps: list[tuple[str, int]], lag: float, tasks: int, seed: int
) -> None:
    """Partitions, turns of the tasks and fusion change when results appear, and never what they are."""
    builder = Builder()
    source = builder.new_source(Partitions(inputs)).set_num_partitions(tasks)
    stream: Streamlet[Any] = source.event_time(lambda each: each[0], lag=lag).map(lambda each: each[1:])
    running = False
    for name, partitions in steps:
        if running and name in STATEFUL:
            continue
        running = running or name in RUNNING
        stream = STEPS[name](stream)
        if name not in STATELESS and name != "whole":
            stream.set_num_partitions(partitions)
    stream.to_sink(Collect("results"))
    check(builder, seed)


@pytest.mark.parametrize("name", [name for name in STATEFUL if name in ("tumbling", "sliding", "session", "join")])
@settings(max_examples=40, deadline=None)
@given(inputs=st.lists(RECORDS, min_size=1, max_size=3), lag=st.sampled_from([0, 4]), tasks=st.integers(1, 3))
def test_late_elements_are_the_same_in_any_number_of_tasks(
    name: str, inputs: list[list[Any]], lag: float, tasks: int
) -> None:
    """An element is late by the order of its source partition alone."""
    builder = Builder()
    source = builder.new_source(Partitions(inputs)).set_num_partitions(tasks)
    timed = source.event_time(lambda each: each[0], lag=lag).map(lambda each: each[1:])
    results: Any = STATEFUL[name](timed)
    results.late.to_sink(Collect("late"))
    results.to_sink(Collect("results"))
    again = results.late.count_by_key_and_window(tumbling_window(20))
    again.to_sink(Collect("late counts"))
    again.late.to_sink(Collect("late again"))
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
