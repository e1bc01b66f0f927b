"""At most once, what ends a stream runs in the task of its source: nothing is lost, hidden or slower."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from heron.api import Bolt, GlobalStreamId, Grouping, Tuple
from heron_simulator import Simulation
from heron_streamlet import (
    Builder,
    Config,
    Items,
    Reader,
    Sink,
    Source,
    StageContext,
    TextFolder,
    TransactionalSink,
)
from heron_streamlet.topology.source_spout import SourceSpout
from heron_streamlet.topology.topology_compiler import compile_topology
from heron_testing.fake_clock import FakeClock
from heron_testing.pipelines.collected import COLLECTED, Collect
from heron_testing.pipelines.fed_runs import Feed, Running
from heron_testing.pipelines.simulated_runs import run_simulated

NUMBERS = range(3000)


class Odd(Sink[int]):
    """Refuses one number."""

    def put(self, element: int) -> None:
        if element == 7:
            msg = "no seven"
            raise ValueError(msg)
        COLLECTED.setdefault("odd", []).append(element)


class Untidy(Source[int]):
    """Has one partition, whose reader cannot be closed."""

    def partitions(self, tasks: int) -> list[str]:
        del tasks
        return ["only"]

    def open(self, partition: str, position: object, context: StageContext) -> Reader[int]:
        del partition, position, context
        return UntidyReader()


class UntidyReader:
    """Reads two elements."""

    position: object = None

    def __init__(self) -> None:
        self.rest: list[Sequence[int]] = [[1, 2]]

    def read(self, limit: int) -> Sequence[int] | None:
        del limit
        return self.rest.pop() if self.rest else None

    def close(self) -> None:
        msg = "it does not close"
        raise OSError(msg)


class Kept(Sink[int]):
    """Shows what it got when it is closed."""

    def setup(self, context: StageContext) -> None:
        del context
        self.kept: list[int] = []

    def put(self, element: int) -> None:
        self.kept.append(element)

    def close(self) -> None:
        COLLECTED["kept"] = list(self.kept)


class Committed(TransactionalSink[int]):
    """Notes its calls; the first commits fail."""

    def __init__(self, name: str, failing: int) -> None:
        self.name, self.failing = name, failing

    def put(self, element: int) -> None:
        COLLECTED.setdefault(self.name, []).append(element)

    def prepare(self, checkpoint: int) -> None:
        COLLECTED.setdefault(f"{self.name} calls", []).append(("prepare", checkpoint))

    def commit(self, checkpoint: int) -> None:
        COLLECTED.setdefault(f"{self.name} calls", []).append(("commit", checkpoint))
        if self.failing:
            self.failing -= 1
            msg = "the disk is full"
            raise OSError(msg)

    def restore(self, checkpoint: int) -> None:
        del checkpoint


class SlowSink(Sink[int]):
    """Takes a second of the test's clock for each element."""

    clock = FakeClock()

    def put(self, element: int) -> None:
        COLLECTED.setdefault("slow", []).append(element)
        self.clock.advance(1.0)


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


DELIVERIES = (Config.ATMOST_ONCE, Config.ATLEAST_ONCE, Config.EFFECTIVELY_ONCE)


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_what_a_sink_refuses_is_missing_nowhere_else(delivery: Any) -> None:  # noqa: ANN401
    """Not in a sink or a count behind it, and not in the rest of a `flat_map`, whatever the delivery."""
    builder = Builder()
    numbers = builder.new_source(Items([range(20)])).flat_map(list)
    numbers.to_sink(Odd())
    numbers.to_sink(Collect("all"))
    numbers.key_by(lambda _: "all").count_by_key().to_sink(Collect("counts"))
    run = run_simulated(builder, Config().set_delivery_semantics(delivery))
    assert len(run.errors) == 1
    assert run["odd"] == sorted(set(range(20)) - {7}, key=repr)
    assert run["all"] == sorted(range(20), key=repr)
    assert max(count for _, count in run["counts"]) == 20


def test_a_commit_that_fails_is_tried_again_alone() -> None:
    """A sink that has committed is not asked again, and the source does not end before the last one has."""
    builder = Builder()
    numbers = builder.new_source(Items(range(3))).map(int)
    numbers.to_sink(Committed("one", 0))
    numbers.to_sink(Committed("other", 2))
    run = run_simulated(builder)
    assert run.errors
    assert all("the disk is full" in error for error in run.errors)
    assert run.collected["one calls"] == [("prepare", 1), ("commit", 1)]
    assert run.collected["other calls"] == [("prepare", 1), ("commit", 1), ("commit", 1), ("commit", 1)]


def test_a_reader_that_does_not_close_keeps_no_sink_open() -> None:
    """A sink may show its data when it is closed."""
    builder = Builder()
    builder.new_source(Untidy()).to_sink(Kept())
    run_simulated(builder)
    assert COLLECTED["kept"] == [1, 2]


def test_the_engine_may_look_at_its_commands_after_a_slow_call() -> None:
    """It makes several calls that emit before it looks; so the call behind a slow one reads and emits nothing."""
    builder = Builder()
    builder.new_source(Items(range(3))).to_sink(SlowSink())
    COLLECTED.clear()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(SourceSpout, "clock", SlowSink.clock)
        with Simulation(compile_topology("pipeline", builder.graph(), {}), clock=FakeClock()) as simulation:
            spout = simulation.component("source-1-to-sink-1", 0)
            assert isinstance(spout, SourceSpout)
            simulation.step()
            assert spout.rests
            simulation.run_until_finished()
    assert COLLECTED["slow"] == [0, 1, 2]


def test_a_source_with_sinks_and_other_streams_tells_its_progress() -> None:
    """If the other streams rarely get a row, the engine would call it as if it had no data."""
    builder = Builder()
    numbers = builder.new_source(Items(NUMBERS)).map(int)
    numbers.to_sink(Collect("all"))
    numbers.filter(lambda number: number < 0).key_by(str).count_by_key().to_sink(Collect("counts"))
    (source, *_) = compile_topology("pipeline", builder.graph(), {}).build().components
    assert [stream.name for stream in source.outputs] == ["default", "progress"]


@pytest.mark.parametrize("refusing", [False, True])
def test_the_source_tells_how_many_elements_it_processed(*, refusing: bool) -> None:
    """Otherwise a pipeline of one component would look as if it did nothing."""
    builder = Builder()
    builder.new_source(Items(NUMBERS)).to_sink(Odd() if refusing else Collect("all"))
    topology = compile_topology("pipeline", builder.graph(), {})
    topology.add_bolt(
        "listener", Listener, par=1, inputs={GlobalStreamId("source-1-to-sink-1", "progress"): Grouping.SHUFFLE}
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


@pytest.mark.parametrize("delivery", DELIVERIES[1:])
def test_a_sink_has_tasks_of_its_own_where_rows_are_replayed(delivery: Any) -> None:  # noqa: ANN401
    """There it consumes acked rows, and its data appears with a checkpoint."""
    builder = Builder()
    builder.new_source(Items(NUMBERS)).to_sink(Collect("all"))
    config = Config().set_delivery_semantics(delivery)
    topology = compile_topology("pipeline", builder.graph(), config.values())
    assert [spec.name for spec in topology.build().components] == ["source-1", "sink-1"]
