"""At most once, what ends a stream runs in the task of its source: nothing is lost, hidden or slower."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from heron.api import Bolt, GlobalStreamId, Grouping, Tuple
from heron_simulator import Simulation
from heron_streamlet import Builder, Config, Items, Sink, TextFolder
from heron_streamlet.topology_compiler import compile_topology
from heron_testing.fake_clock import FakeClock
from pipelines.collected import COLLECTED, Collect
from pipelines.fed_runs import Feed, Running
from pipelines.simulated_runs import run_simulated

NUMBERS = range(3000)


class Odd(Sink[int]):
    """Refuses one number."""

    def put(self, element: int) -> None:
        if element == 7:
            msg = "no seven"
            raise ValueError(msg)
        COLLECTED.setdefault("odd", []).append(element)


class Listener(Bolt):
    """Keeps what a source tells of itself."""

    def process(self, tup: Tuple) -> None:
        COLLECTED.setdefault("told", []).append(tup.values[0])


def test_a_transaction_is_shown_when_its_source_has_ended(tmp_path: Path) -> None:
    """Nothing is called after the end of a source, so the source commits."""
    builder = Builder()
    builder.new_source(Items(NUMBERS)).map(str).to_sink(TextFolder(tmp_path))
    assert run_simulated(builder).errors == ()
    (file,) = tmp_path.glob("*")
    assert file.read_text(encoding="utf-8").split() == [str(each) for each in NUMBERS]


def test_a_transaction_without_elements_shows_nothing(tmp_path: Path) -> None:
    """An empty source has nothing to show, and that is no error."""
    builder = Builder()
    builder.new_source(Items[int]([])).map(str).to_sink(TextFolder(tmp_path))
    assert run_simulated(builder).errors == ()
    assert list(tmp_path.glob("*")) == []


def test_a_sink_that_refuses_an_element_does_not_stop_the_source() -> None:
    """The error names sink and line; the elements around it arrive, in the other sinks as well."""
    builder = Builder()
    numbers = builder.new_source(Items(NUMBERS)).map(int)
    numbers.to_sink(Collect("all"))
    numbers.to_sink(Odd())
    run = run_simulated(builder)
    (error,) = run.errors
    assert "operator 'sink-2' (test_sinks_in_sources.py:" in error
    assert "no seven" in error
    assert run["all"] == sorted(NUMBERS, key=repr)
    assert run["odd"] == sorted(set(NUMBERS) - {7}, key=repr)


@pytest.mark.parametrize("refusing", [False, True])
def test_the_source_tells_how_many_elements_it_processed(*, refusing: bool) -> None:
    """Otherwise a pipeline of one component would look as if it did nothing."""
    builder = Builder()
    builder.new_source(Items(NUMBERS)).to_sink(Odd() if refusing else Collect("all"))
    topology = compile_topology("pipeline", builder.graph(), {})
    topology.add_bolt(
        "listener", Listener, par=1, inputs={GlobalStreamId("source-1-to-sink-1", "default"): Grouping.SHUFFLE}
    )
    COLLECTED.clear()
    with Simulation(topology, clock=FakeClock()) as simulation:
        simulation.run_until_finished()
    assert sum(COLLECTED["told"]) == len(NUMBERS)


def test_a_source_that_waits_tells_nothing() -> None:
    """The engine then calls it less often."""
    builder = Builder()
    builder.new_source(Feed("a", "b")).to_sink(Collect("results"))
    running = Running(builder)
    running.feed("a", 1, 2)
    assert sorted(running.after(1.0)) == [1, 2]
    before = running.simulation.counts()["source-1-to-sink-1"].emitted
    assert running.after(1.0) == []
    assert running.simulation.counts()["source-1-to-sink-1"].emitted == before
    running.feed("b", 3)
    assert running.after(1.0) == [3]


@pytest.mark.parametrize("delivery", [Config.ATLEAST_ONCE, Config.EFFECTIVELY_ONCE])
def test_a_sink_has_tasks_of_its_own_where_rows_are_replayed(delivery: Any) -> None:  # noqa: ANN401
    """There it consumes acked rows, and its data appears with a checkpoint."""
    builder = Builder()
    builder.new_source(Items(NUMBERS)).to_sink(Collect("all"))
    config = Config().set_delivery_semantics(delivery)
    topology = compile_topology("pipeline", builder.graph(), config.values())
    assert [spec.name for spec in topology.build().components] == ["source-1", "sink-1"]
