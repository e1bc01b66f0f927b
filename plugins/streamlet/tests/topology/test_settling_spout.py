"""Readers that hear when elements are safe: at each delivery, when the results are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from heron.api import TopologyReliabilityMode
from heron_simulator import Simulation
from heron_streamlet import Builder, Config, Source, StageContext
from heron_streamlet.topology.settling_spout import SettlingSourceSpout
from heron_streamlet.topology.topology_compiler import compile_topology
from heron_testing.fake_clock import FakeClock
from heron_testing.pipelines.collected import Collect

HEARD: list[int] = []


class Queue(Source[int]):
    """Ten elements, two at a time."""

    settles = True

    def partitions(self, tasks: int) -> Sequence[str]:
        return ["0"]

    def open(self, partition: str, position: object, context: StageContext) -> QueueReader:
        return QueueReader()


class QueueReader:
    """Notes what it hears."""

    position = None

    def __init__(self) -> None:
        self.left = list(range(10))

    def read(self, limit: int) -> Sequence[int] | None:
        taken, self.left = self.left[:2], self.left[2:]
        return taken or None

    def settled(self, count: int) -> None:
        HEARD.append(count)

    def close(self) -> None:
        pass


@pytest.fixture(autouse=True)
def _silence() -> None:
    HEARD.clear()


def simulation(delivery: Any, function: Any = lambda number: number) -> Simulation:  # noqa: ANN401  # an author's
    builder = Builder()
    numbers = builder.new_source(Queue()).map(function)
    numbers.filter(lambda number: number % 5 != 0).repartition(1).to_sink(Collect("all"))
    config = Config().set_delivery_semantics(delivery)
    return Simulation(compile_topology("pipeline", builder.graph(), config.values()), clock=FakeClock())


def spout_of(running: Simulation) -> SettlingSourceSpout:
    spout = running.component("source-1-to-filter-1", 0)
    assert isinstance(spout, SettlingSourceSpout)
    return spout


@pytest.mark.parametrize("delivery", [Config.ATMOST_ONCE, Config.ATLEAST_ONCE])
def test_all_elements_are_safe_at_the_end(delivery: TopologyReliabilityMode) -> None:
    """Those that become no row too, in the order in which they were read."""
    with simulation(delivery) as running:
        running.run_until_finished()
    assert sorted(HEARD) == HEARD
    assert HEARD[-1] == 10


def test_at_least_once_an_element_is_safe_when_all_before_it_are_acked() -> None:
    """A reader hears a number of elements, so one row that is replayed holds the later ones back."""
    with simulation(Config.ATLEAST_ONCE) as running:
        spout = spout_of(running)
        sent: list[Any] = []
        spout.emit = lambda values, tup_id, stream: sent.append(tup_id)  # type: ignore[method-assign,assignment,misc]
        for _ in range(3):
            spout.next_tuple()  # 0 and 1, 2 and 3, 4 and 5: the filter leaves 1, 2, 3, 4
        assert (len(sent), HEARD) == (4, [])
        for acked in (sent[2], sent[1]):
            spout.ack(acked)
        spout.fail(sent[0])
        assert (sent[4], HEARD) == (sent[0], [])
        spout.ack(sent[0])
        assert HEARD == [4]
        spout.ack(sent[3])
        assert HEARD == [4, 6]


def test_effectively_once_an_element_is_safe_with_its_checkpoint() -> None:
    """A checkpoint that fails is no checkpoint; the next one contains its elements."""
    with simulation(Config.EFFECTIVELY_ONCE) as running:
        spout = spout_of(running)
        spout.emit = lambda values, stream="default": None  # type: ignore[method-assign,assignment,misc]
        for number in (1, 2, 3):
            spout.next_tuple()
            spout.pre_save(str(number))
        assert HEARD == []
        spout.post_save("2")
        assert HEARD == [4]
        spout.post_save("3")
        spout.post_save("3")
        assert HEARD == [4, 6]


def test_an_element_that_fails_counts() -> None:
    """It would fail again; the error is shown."""

    def fail_at_three(number: int) -> int:
        assert number != 3
        return number

    with simulation(Config.ATLEAST_ONCE, fail_at_three) as running:
        running.run_until_finished()
        assert len(running.errors()) == 1
    assert HEARD[-1] == 10
