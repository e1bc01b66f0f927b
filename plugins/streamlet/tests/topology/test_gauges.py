"""Readers that have numbers about their partitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from heron_simulator import Simulation
from heron_streamlet import Builder, Config, Source, StageContext
from heron_streamlet.topology.topology_compiler import compile_topology
from heron_testing.fake_clock import FakeClock
from heron_testing.pipelines.collected import Collect


class Queues(Source[int]):
    """Three queues; the number of each is what waits in it."""

    def partitions(self, tasks: int) -> Sequence[str]:
        return ["1", "2", "3"]

    def open(self, partition: str, position: object, context: StageContext) -> QueueReader:
        return QueueReader(int(partition))


class QueueReader:
    """Gives nothing yet."""

    position = None

    def __init__(self, waiting: int) -> None:
        self._waiting = waiting

    def read(self, limit: int) -> Sequence[int]:
        return ()

    def gauges(self) -> Mapping[str, float]:
        return {"waiting": self._waiting + 0.5, "queues": 1.0}

    def close(self) -> None:
        pass


def test_the_metric_has_the_sums_of_the_partitions_of_a_task() -> None:
    """What a user sees is the task: it reads several partitions."""
    builder = Builder()
    builder.new_source(Queues()).repartition(1).to_sink(Collect("all"))
    config = Config().set_delivery_semantics(Config.ATLEAST_ONCE)
    with Simulation(compile_topology("queues", builder.graph(), config.values()), clock=FakeClock()) as running:
        running.step()
        assert running.read_metrics("source-1").items() >= {("source/waiting", 7.5), ("source/queues", 3.0)}
