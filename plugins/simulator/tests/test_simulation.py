"""A topology in one process behaves as on several processes, and deterministically."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from heron.api import (
    AssignableMetrics,
    Bolt,
    CountMetric,
    EmitInfo,
    Grouping,
    ICustomGrouping,
    ITaskHook,
    Spout,
    TopologyBuilder,
    TopologyContext,
    Tuple,
    api_constants,
)
from heron.clock import SystemClock
from heron.errors import LimitExceededError, TopologyError, TopologyFailedError, UsageError
from heron.planner.key_group import key_group
from heron.planner.key_owners import even_owners
from heron.planner.physical_plan import TopologyState
from heron_simulator import ComponentCounts, Simulation
from heron_testing.fake_clock import FakeClock

WORDS = ["heron", "ibis", "heron", "egret", "ibis", "heron", "stork", "crane"]


class WordSpout(Spout):
    """Emits the words, one per call."""

    outputs = ("word", "number")

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        self.number = 0

    def next_tuple(self) -> None:
        if self.number == len(WORDS):
            self.end()
            return
        self.emit([WORDS[self.number], self.number])
        self.number += 1


class CountBolt(Bolt):
    """Counts, and emits its totals at the end."""

    outputs = ("word", "count")

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        self.context = context
        self.counts: Counter[str] = Counter()
        self.ticks = 0
        self.closed = False

    def process(self, tup: Tuple) -> None:
        self.counts[tup.values[0]] += 1

    def process_tick(self, tup: Tuple) -> None:
        self.ticks += 1

    def finish(self) -> None:
        for pair in sorted(self.counts.items()):
            self.emit(pair)

    def close(self) -> None:
        self.closed = True


class KeepBolt(Bolt):
    """Keeps every tuple."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        self.kept: list[Tuple] = []

    def process(self, tup: Tuple) -> None:
        self.kept.append(tup)


def words(counters: int = 2, config: Mapping[str, object] | None = None) -> TopologyBuilder:
    """A topology in which several tasks count words and one keeps the totals."""
    builder = TopologyBuilder("words")
    spout = builder.add_spout("words", WordSpout, par=1)
    count = builder.add_bolt("count", CountBolt, counters, {spout: Grouping.fields("word")}, config)
    builder.add_bolt("keep", KeepBolt, 1, {count: Grouping.GLOBAL})
    return builder


def kept(simulation: Simulation, name: str = "keep") -> list[tuple[Any, ...]]:
    """The values that a `KeepBolt` keeps."""
    component = simulation.component(name)
    assert isinstance(component, KeepBolt)
    return [tup.values for tup in component.kept]


def counter(simulation: Simulation, index: int = 0) -> CountBolt:
    """A task of the counting bolt."""
    component = simulation.component("count", index)
    assert isinstance(component, CountBolt)
    return component


def test_runs_to_its_end_with_exact_results() -> None:
    """The run includes `end`, `finish` with its emits, and the counts of the report."""
    with Simulation(words(), clock=FakeClock()) as simulation:
        simulation.run_until_finished()
        assert sorted(kept(simulation)) == [("crane", 1), ("egret", 1), ("heron", 3), ("ibis", 2), ("stork", 1)]
        assert simulation.state is TopologyState.FINISHED
        assert simulation.errors() == ()
        assert simulation.counts() == {
            "words": ComponentCounts(emitted=8),
            "count": ComponentCounts(emitted=5, executed=8),
            "keep": ComponentCounts(executed=5),
        }
        assert counter(simulation).closed


def test_keys_reach_the_same_task_index_as_on_processes() -> None:
    """A test that passes in the simulator must not fail on processes because of the placement of a key."""
    with Simulation(words(counters=3), clock=FakeClock()) as simulation:
        simulation.run_until_finished()
        for index in range(3):
            assert set(counter(simulation, index).counts) == {
                word for word in WORDS if even_owners(1024, range(3))[key_group((word,), 1024)] == index
            }


def test_step_runs_one_round() -> None:
    """One call of `next_tuple` flows through the whole topology, so a debugger can follow it."""
    with Simulation(words(counters=1), clock=FakeClock()) as simulation:
        assert simulation.step()
        assert simulation.step()
        assert counter(simulation).counts == {"heron": 1, "ibis": 1}
    assert simulation.state is TopologyState.KILLED


def test_runs_with_the_same_seed_are_equal() -> None:
    """Determinism includes the order of arrival, not only the sums."""

    def arrivals(seed: int | None) -> list[tuple[Any, ...]]:
        builder = TopologyBuilder("order")
        spout = builder.add_spout("words", WordSpout, par=3)
        builder.add_bolt("keep", KeepBolt, 1, {spout: Grouping.SHUFFLE})
        with Simulation(builder, clock=FakeClock(), seed=seed) as simulation:
            simulation.run_until_finished()
            component = simulation.component("keep")
            assert isinstance(component, KeepBolt)
            return [(tup.task, *tup.values) for tup in component.kept]

    plain, seeded = arrivals(None), arrivals(7)
    assert arrivals(None) == plain
    assert arrivals(7) == seeded
    assert plain != seeded
    assert sorted(plain) == sorted(seeded)


def test_ticks_follow_the_clock_only() -> None:
    """The test determines how much time passes, and gets exactly that number of ticks."""
    every = {api_constants.TOPOLOGY_TICK_TUPLE_FREQ_SECS: 2}
    with Simulation(words(counters=1, config=every), clock=FakeClock()) as simulation:
        simulation.step()
        assert counter(simulation).ticks == 0
        simulation.advance(1.9)
        assert counter(simulation).ticks == 0
        simulation.advance(0.1)
        assert counter(simulation).ticks == 1
        simulation.advance(4)
        assert counter(simulation).ticks == 3


def test_real_clock_cannot_be_moved() -> None:
    """If it silently did nothing, a test of ticks could pass for the wrong reason."""
    with Simulation(words(), clock=SystemClock()) as simulation, pytest.raises(UsageError, match="cannot be moved"):
        simulation.advance(1)


def test_runs_on_the_real_clock_too() -> None:
    """`heron run --simulate` uses it."""
    with Simulation(words(), clock=SystemClock()) as simulation:
        simulation.run_until_finished()
        assert len(kept(simulation)) == 5


class IdleSpout(Spout):
    """Emits nothing and never ends."""

    outputs = ("word",)

    def next_tuple(self) -> None:
        pass


def test_the_error_names_the_task_that_does_not_end() -> None:
    """A test of a topology without an end must not hang."""
    builder = TopologyBuilder("idle")
    spout = builder.add_spout("words", IdleSpout, par=2)
    builder.add_bolt("keep", KeepBolt, 1, [spout])
    clock = FakeClock()
    with Simulation(builder, clock=clock) as simulation:
        with pytest.raises(LimitExceededError, match=r"50 steps; not ended: 'keep\[0\]', 'words\[0\]', 'words\[1\]'"):
            simulation.run_until_finished(max_steps=50)
        assert clock.monotonic_s() > 1000.0, "an idle spout is asked again after some time"


class ValuesSpout(Spout):
    """Emits a dict, changes it, and emits a value that cannot be encoded."""

    outputs = ("value",)

    def next_tuple(self) -> None:
        value = {"number": 1}
        self.emit([value])
        self.emit([lambda: None])
        self.emit([{"number": 2}])
        self.value = value
        self.end()


def test_values_are_copied_as_between_processes() -> None:
    """A topology must not work in the simulator only because an object is shared."""
    builder = TopologyBuilder("values")
    spout = builder.add_spout("values", ValuesSpout, par=1)
    builder.add_bolt("keep", KeepBolt, 1, [spout])
    with Simulation(builder, clock=FakeClock()) as simulation:
        simulation.run_until_finished()
        source = simulation.component("values")
        assert isinstance(source, ValuesSpout)
        assert kept(simulation) == [({"number": 1},), ({"number": 2},)]
        assert kept(simulation)[0][0] is not source.value
        (error,) = simulation.errors()
        assert "of type function cannot be encoded" in error
        assert "(ValuesSpout)" in error
        assert simulation.counts()["values"].failed == 1


class PickyBolt(Bolt):
    """Raises for herons."""

    def process(self, tup: Tuple) -> None:
        if tup.values[0] == "heron":
            message = "no herons"
            raise ValueError(message)


def picky(config: Mapping[str, object] | None = None) -> TopologyBuilder:
    """Words for `PickyBolt`."""
    builder = TopologyBuilder("picky")
    spout = builder.add_spout("words", WordSpout, par=1)
    builder.add_bolt("picky", PickyBolt, 1, [spout], config)
    return builder


def test_user_errors_are_counted_and_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    """As in a process, three failures of one kind give one message with the author's line, and three counts."""
    with Simulation(picky(), clock=FakeClock()) as simulation:
        simulation.run_until_finished()
        assert simulation.counts()["picky"] == ComponentCounts(executed=8, failed=3)
        (error,) = simulation.errors()
        assert "component 'picky', task 2: process with Tuple(" in error
        assert "raised ValueError: no herons; at " in error
        assert "test_simulation.py, line" in error
        assert capsys.readouterr().err.count("Traceback") == 1


def test_on_error_stop_fails_the_topology() -> None:
    """The key has the same meaning in the simulator."""
    config = {api_constants.TOPOLOGY_ON_ERROR: "stop"}
    with Simulation(picky(config), clock=FakeClock()) as simulation:
        with pytest.raises(TopologyFailedError, match="no herons"):
            simulation.run_until_finished()
        assert simulation.state is TopologyState.FAILED


class ReportingBolt(Bolt):
    """Reports an error for each tuple, and goes on with the call."""

    def process(self, tup: Tuple) -> None:
        self.report_error(ValueError("no herons"))
        KEPT.append(tup.values[0])


KEPT: list[object] = []


@pytest.mark.parametrize("on_error", ["continue", "stop"])
def test_reported_errors_are_counted_or_stop(on_error: str) -> None:
    """As in a process, the call goes on, unless errors stop the topology."""
    KEPT.clear()
    builder = TopologyBuilder("reporting")
    spout = builder.add_spout("words", WordSpout, par=1)
    builder.add_bolt("reporting", ReportingBolt, 1, [spout], {api_constants.TOPOLOGY_ON_ERROR: on_error})
    with Simulation(builder, clock=FakeClock()) as simulation:
        if on_error == "stop":
            with pytest.raises(TopologyFailedError, match=r"process with .* raised ValueError: no herons"):
                simulation.run_until_finished()
            assert KEPT == []
            return
        simulation.run_until_finished()
        (error,) = simulation.errors()
        assert "component 'reporting', task 2: the component raised ValueError: no herons" in error
        assert len(KEPT) == simulation.counts()["reporting"].executed == 8


class BrokenBolt(Bolt):
    """Cannot be initialised."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        message = "no database"
        raise OSError(message)

    def process(self, tup: Tuple) -> None:
        pass


def test_component_that_cannot_start_fails_the_topology() -> None:
    """The author's exception is the cause, so that pytest shows the line."""
    builder = TopologyBuilder("broken")
    spout = builder.add_spout("words", WordSpout, par=1)
    builder.add_bolt("broken", BrokenBolt, 1, [spout])
    with pytest.raises(TopologyFailedError, match="initialize raised OSError: no database") as raised:
        Simulation(builder, clock=FakeClock())
    assert isinstance(raised.value.__cause__, OSError)


def test_topology_is_verified_first() -> None:
    """The error is that of `heron run`."""
    builder = TopologyBuilder("unknown")
    spout = builder.add_spout("words", WordSpout, par=1)
    builder.add_bolt("keep", KeepBolt, 1, {spout: Grouping.fields("wrod")})
    with pytest.raises(TopologyError, match="wrod"):
        Simulation(builder, clock=FakeClock())


class FlakySpout(WordSpout):
    """Fails every other call."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        super().initialize(config, context)
        self.failing = False

    def next_tuple(self) -> None:
        self.failing = not self.failing
        if self.failing:
            message = "not yet"
            raise TimeoutError(message)
        super().next_tuple()


def test_next_tuple_that_raises_is_called_again_later() -> None:
    """It waits before the next call, in simulated time."""
    builder = TopologyBuilder("flaky")
    spout = builder.add_spout("words", FlakySpout, par=1)
    builder.add_bolt("keep", KeepBolt, 1, [spout])
    clock = FakeClock()
    with Simulation(builder, clock=clock) as simulation:
        simulation.run_until_finished()
        assert len(kept(simulation)) == len(WORDS)
        assert clock.monotonic_s() == pytest.approx(1000.0 + 0.1 * (len(WORDS) + 1))


class RecordingHook(ITaskHook):
    """Records emits."""

    def __init__(self) -> None:
        self.emits: list[tuple[Any, ...]] = []

    def emit(self, emit_info: EmitInfo) -> None:
        self.emits.append(emit_info.values)


class ObservedSpout(WordSpout):
    """Has a hook and metrics."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        super().initialize(config, context)
        self.hook = RecordingHook()
        context.add_task_hook(self.hook)
        self.calls = CountMetric()
        self.last = AssignableMetrics("none")
        context.register_metric("calls", self.calls, 60)

    def next_tuple(self) -> None:
        self.calls.incr()
        super().next_tuple()


def test_hooks_and_metrics_of_the_context_work() -> None:
    """A unit test can look at both."""
    builder = TopologyBuilder("observed")
    spout = builder.add_spout("words", ObservedSpout, par=1)
    builder.add_bolt("keep", KeepBolt, 1, [spout])
    with Simulation(builder, clock=FakeClock()) as simulation:
        simulation.run_until_finished()
        component = simulation.component("words")
        assert isinstance(component, ObservedSpout)
        assert component.hook.emits == [(word, number) for number, word in enumerate(WORDS)]
        assert simulation.read_metrics("words") == {"calls": len(WORDS) + 1}
        assert simulation.read_metrics("words") == {"calls": 0}


def test_names_the_nearest_component() -> None:
    """A typing error in a test is found at once."""
    with Simulation(words(), clock=FakeClock()) as simulation:
        with pytest.raises(UsageError, match="unknown component 'cuont' \\(nearest: 'count'\\)"):
            simulation.component("cuont")
        with pytest.raises(UsageError, match="no task with index 2; it has 2, from index 0"):
            simulation.component("count", 2)


class ThreadSpout(Spout):
    """Emits from another thread."""

    outputs = ("word", "number")

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        collector = context.threadsafe_collector()
        collector.emit(["heron", 1])
        collector.end()

    def next_tuple(self) -> None:
        pass


def test_calls_of_the_threadsafe_collector_are_executed_in_turn() -> None:
    """Components that start threads run in the simulator too."""
    builder = TopologyBuilder("threads")
    spout = builder.add_spout("words", ThreadSpout, par=1)
    builder.add_bolt("keep", KeepBolt, 1, [spout])
    with Simulation(builder, clock=FakeClock()) as simulation:
        simulation.run_until_finished()
        assert kept(simulation) == [("heron", 1)]


class EveryOther(ICustomGrouping):
    """Sends every other tuple; each emitting task has its own count."""

    def __init__(self) -> None:
        self.seen = 0

    def prepare(self, context: TopologyContext, component: str, stream: str, target_tasks: Sequence[int]) -> None:
        self.tasks = list(target_tasks)

    def choose_tasks(self, values: tuple[Any, ...]) -> list[int]:
        self.seen += 1
        return self.tasks if self.seen % 2 else []


def test_each_task_has_its_own_grouping_object() -> None:
    """With a shared object, one of the two spouts would send everything and the other nothing."""
    builder = TopologyBuilder("every_other")
    spout = builder.add_spout("words", WordSpout, par=2)
    builder.add_bolt("keep", KeepBolt, 1, {spout: Grouping.custom(EveryOther())})
    with Simulation(builder, clock=FakeClock()) as simulation:
        simulation.run_until_finished()
        assert sorted(number for _, number in kept(simulation)) == [0, 0, 2, 2, 4, 4, 6, 6]


class RoutedSpout(Spout):
    """Asks for the receiving tasks of its tuples."""

    outputs = ("number",)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        self.targets = context.get_component_tasks("direct")
        self.asked: list[list[int] | None] = []

    def next_tuple(self) -> None:
        self.asked.append(self.emit([1], direct_task=self.targets[1], need_task_ids=True))
        self.asked.append(self.emit([2], need_task_ids=True))
        self.end()


def test_direct_grouping_and_task_ids() -> None:
    """An emit returns its receiving tasks, and `direct_task` is one of them."""
    builder = TopologyBuilder("direct")
    spout = builder.add_spout("numbers", RoutedSpout, par=1)
    builder.add_bolt("direct", KeepBolt, 2, {spout: Grouping.DIRECT})
    builder.add_bolt("all", KeepBolt, 2, {spout: Grouping.ALL})
    with Simulation(builder, clock=FakeClock()) as simulation:
        simulation.run_until_finished()
        source = simulation.component("numbers")
        assert isinstance(source, RoutedSpout)
        assert source.asked == [[4, 5, 3], [4, 5]]
        chosen = simulation.component("direct", 1)
        assert isinstance(chosen, KeepBolt)
        assert [tup.values for tup in chosen.kept] == [(1,)]
        assert kept(simulation, "all") == [(1,), (2,)]
