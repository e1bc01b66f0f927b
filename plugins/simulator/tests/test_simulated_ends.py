"""No call of `next_tuple` follows `end` in a simulation or in the null engine, as on processes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from heron.api import Bolt, Grouping, Spout, TopologyBuilder, TopologyContext, Tuple, api_constants
from heron.spi.driver import DriverRef
from heron_simulator import Simulation
from heron_simulator.null_engine import run_null_engine
from heron_testing.fake_clock import FakeClock

ARROW = (DriverRef("serializer", "arrow", "heron_serializer_arrow.serializer:ArrowSerializer", {}),)
MODES = ["ATMOST_ONCE", "ATLEAST_ONCE", "EFFECTIVELY_ONCE"]


class FiveEach(Spout):
    """Emits five new numbers in each call, and ends in its fourth call."""

    outputs = ("number",)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        self.calls = self.number = 0
        self.failed: list[Any] = []

    def next_tuple(self) -> None:
        self.calls += 1
        numbers = range(self.number, self.number + 5)
        self.number += 5
        if self.calls == 4:
            self.end()
        self.give(numbers)

    def give(self, numbers: range) -> None:
        """Emits rows."""
        for number in numbers:
            self.emit([number], tup_id=number)


class Columns(FiveEach):
    """Emits them as columns."""

    columns = True

    def give(self, numbers: range) -> None:
        self.emit_columns({"number": list(numbers)}, ids=numbers)


class Queues(FiveEach):
    """Queues failed numbers, and emits them before new ones."""

    def next_tuple(self) -> None:
        if not self.failed:
            super().next_tuple()
            return
        self.calls += 1
        number = self.failed.pop()
        self.emit([number], tup_id=number)

    def fail(self, tup_id: object) -> None:
        self.failed.append(tup_id)


class ReplaysAtOnce(FiveEach):
    """Emits failed numbers in `fail`."""

    def fail(self, tup_id: object) -> None:
        self.emit([tup_id], tup_id=tup_id)


class OnlyNotes(FiveEach):
    """Overrides `fail` and replays nothing."""

    def fail(self, tup_id: object) -> None:
        self.failed.append(tup_id)


class EndsAtOnce(FiveEach):
    """Ends before the first call."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        super().initialize(config, context)
        self.end()


class Seen(Bolt):
    """Keeps the numbers; fails numbers 1 and 7 when they first come."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        self.numbers: list[int] = []
        self.fails = [1, 7] if config["fails"] else []

    def process(self, tup: Tuple) -> None:
        number = tup.values[0]
        self.numbers.append(number)
        if number in self.fails:
            self.fails.remove(number)
            self.fail(tup)
        else:
            self.ack(tup)


def ends(spout: type[FiveEach], mode: str, *, fails: bool = False) -> TopologyBuilder:
    builder = TopologyBuilder("ends")
    builder.set_config({api_constants.TOPOLOGY_RELIABILITY_MODE: mode, "fails": fails})
    source = builder.add_spout("numbers", spout, par=1)
    builder.add_bolt("seen", Seen, 1, {source: Grouping.SHUFFLE})
    return builder


def run(builder: TopologyBuilder, calls_per_step: int = 1) -> tuple[int, list[int]]:
    """The calls of `next_tuple`, and the numbers that arrived."""
    with Simulation(builder, clock=FakeClock(), calls_per_step=calls_per_step, serializers=ARROW) as simulation:
        simulation.run_until_finished(max_steps=1000)
        source, seen = simulation.component("numbers"), simulation.component("seen")
        assert isinstance(source, FiveEach)
        assert isinstance(seen, Seen)
        return source.calls, seen.numbers


@pytest.mark.parametrize("calls_per_step", [1, 100])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("spout", [FiveEach, Columns])
def test_the_call_that_ends_is_the_last_and_its_tuples_count(
    spout: type[FiveEach], mode: str, calls_per_step: int
) -> None:
    """However many calls a step has."""
    assert run(ends(spout, mode), calls_per_step) == (4, list(range(20)))


@pytest.mark.parametrize("mode", MODES)
def test_a_spout_that_ends_in_initialize_is_never_called(mode: str) -> None:
    """For example a task without partitions."""
    assert run(ends(EndsAtOnce, mode)) == (0, [])


@pytest.mark.parametrize(("spout", "calls"), [(FiveEach, 4), (ReplaysAtOnce, 4), (Queues, 6)])
def test_failed_tuples_are_reason_for_a_call_only_if_they_are_queued(spout: type[FiveEach], calls: int) -> None:
    """And the spout gets to no new numbers."""
    made, numbers = run(ends(spout, "ATLEAST_ONCE", fails=True), 100)
    assert made == calls
    assert sorted(numbers) == sorted([*range(20), *([] if spout is FiveEach else [1, 7])])


def test_a_spout_that_replays_nothing_ends_nevertheless() -> None:
    """Each failed root is reason for at most one call."""
    assert run(ends(OnlyNotes, "ATLEAST_ONCE", fails=True), 100)[0] <= 6


def test_the_null_engine_makes_no_further_call() -> None:
    """It counts the calls that it made."""
    found = run_null_engine(ends(FiveEach, MODES[0]), calls=10_000)
    assert found.calls == 4
    (seen,) = found.components["seen"]
    assert isinstance(seen, Seen)
    assert seen.numbers == list(range(20))


class QueuesAll(Bolt):
    """Emits with the thread-safe collector only."""

    outputs = ("number",)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        self.collector = context.threadsafe_collector()

    def process(self, tup: Tuple) -> None:
        self.collector.emit([tup.values[0]], anchors=[tup])
        self.collector.ack(tup)

    def finish(self) -> None:
        self.collector.emit([-1])


@pytest.mark.parametrize("mode", ["ATMOST_ONCE", "ATLEAST_ONCE"])
def test_queued_calls_are_executed_before_the_end(mode: str) -> None:
    """The last tuple and the END marker may come in one turn; what is emitted behind END is lost."""
    builder = TopologyBuilder("queues")
    builder.set_config({api_constants.TOPOLOGY_RELIABILITY_MODE: mode, "fails": False})
    numbers = builder.add_spout("numbers", FiveEach, par=1)
    queues = builder.add_bolt("queues", QueuesAll, par=1, inputs={numbers: Grouping.SHUFFLE})
    builder.add_bolt("seen", Seen, par=1, inputs={queues: Grouping.SHUFFLE})
    with Simulation(builder, clock=FakeClock(), calls_per_step=100) as simulation:
        simulation.run_until_finished(1000)
        seen = simulation.component("seen")
        assert isinstance(seen, Seen)
        assert seen.numbers == [*range(20), -1]
