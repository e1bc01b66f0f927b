"""A task of a source that has no partition: an update may bring one, unless the source ends."""

from __future__ import annotations

from typing import Any

import pytest

from heron_simulator import Simulation
from heron_streamlet import Builder, Items, Source, tumbling_window
from heron_streamlet.topology.source_spout import SourceSpout
from heron_streamlet.topology.topology_compiler import compile_topology
from heron_testing.fake_clock import FakeClock
from heron_testing.pipelines.collected import Collect
from heron_testing.pipelines.fed_runs import Feed, Running


@pytest.mark.parametrize(("source", "ends"), [(Items(range(3)), True), (Feed("a"), False)])
def test_it_ends_only_if_the_source_does(source: Source[Any], *, ends: bool) -> None:
    """A task that has ended refuses updates."""
    builder = Builder()
    builder.new_source(source).set_num_partitions(2).to_sink(Collect("results"))
    with Simulation(compile_topology("pipeline", builder.graph(), {}), clock=FakeClock()) as simulation:
        spout = simulation.component("source-1-to-sink-1", 1)
        assert isinstance(spout, SourceSpout)
        calls: list[bool] = []
        spout.end = lambda: calls.append(True)  # type: ignore[method-assign]
        for _ in range(3):
            spout.next_tuple()
    assert (spout.partitions, bool(calls)) == ([], ends)


def test_it_holds_no_window_back() -> None:
    """It is idle, so the event time is that of the other tasks."""
    builder = Builder()
    times = builder.new_source(Feed("a")).set_num_partitions(2).event_time(float)
    counts = times.key_by(lambda _: "all").count_by_key_and_window(tumbling_window(10))
    counts.map(lambda result: result[1]).to_sink(Collect("results"))
    running = Running(builder)
    running.feed("a", 1, 2, 3, 25)
    assert running.after(2.0) == [3]
