"""Runs pipelines in this process while a test feeds their sources and moves the clock."""

from __future__ import annotations

from typing import Any

from heron_simulator import Simulation
from heron_streamlet import Builder, Reader, Source, StageContext
from heron_streamlet.topology.topology_compiler import compile_topology
from heron_testing.fake_clock import FakeClock
from heron_testing.pipelines.collected import COLLECTED

__all__ = ["Feed", "Running"]


class Feed(Source[Any]):
    """Partitions that tests fill while the pipeline runs; None ends a partition."""

    bounded = False
    waiting: dict[str, list[Any]] = {}  # noqa: RUF012  # tasks have copies of the source

    def __init__(self, *partitions: str) -> None:
        self.names = partitions
        Feed.waiting = {name: [] for name in partitions}

    def partitions(self, tasks: int) -> list[str]:
        """`Source.partitions`."""
        del tasks
        return list(self.names)

    def open(self, partition: str, position: object, context: StageContext) -> Reader[Any]:
        """`Source.open`."""
        del position, context
        return FeedReader(partition)


class FeedReader:
    """Reads what a test has fed to a partition."""

    position = None

    def __init__(self, name: str) -> None:
        self.name = name

    def read(self, limit: int) -> list[Any] | None:
        """`Reader.read`."""
        del limit
        elements = Feed.waiting[self.name]
        if elements and elements[0] is None:
            return None
        Feed.waiting[self.name] = []
        return elements

    def close(self) -> None:
        """`Reader.close`."""


class Running:
    """A pipeline that has not ended."""

    def __init__(self, builder: Builder) -> None:
        COLLECTED.clear()
        topology = compile_topology("pipeline", builder.graph(), {})
        self.simulation = Simulation(topology, clock=FakeClock(wall_s=1_000_000.0))

    def feed(self, partition: str, *elements: Any) -> None:  # noqa: ANN401
        """Give elements to a partition; None ends it."""
        Feed.waiting[partition] += elements

    def after(self, seconds: float) -> list[Any]:
        """What the sink received meanwhile."""
        COLLECTED.clear()
        for _ in range(10):
            self.simulation.advance(seconds / 10)
            self.simulation.step()
        return list(COLLECTED.get("results", []))
