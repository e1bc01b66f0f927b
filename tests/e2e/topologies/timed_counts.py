"""Counts per second of event time, with late elements, of two partitions; writes results and late elements to folders.

Each partition stops in its middle until there is a file ``go`` among the results.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from recording import arguments

from heron_streamlet import Builder, Config, Reader, Runner, Source, StageContext, TextFolder, sliding_window

ELEMENTS = 6_000
HALF = ELEMENTS // 2


def elements(partition: str) -> list[tuple[float, str]]:
    """The time and key of each element; a few are far behind the others."""
    chance = random.Random(partition)
    return [
        (number / 1000 - (3.0 if chance.random() < 0.01 else chance.random() / 4), f"k{chance.randrange(20)}")
        for number in range(ELEMENTS)
    ]


class Gated(Source[tuple[float, str]]):
    """Two partitions that wait in their middle."""

    def __init__(self, gate: Path | None) -> None:
        self.gate = gate

    def partitions(self, tasks: int) -> list[str]:
        """`Source.partitions`."""
        del tasks
        return ["one", "two"]

    def open(self, partition: str, position: object, context: StageContext) -> Reader[tuple[float, str]]:
        """`Source.open`."""
        del context
        return GatedReader(elements(partition), position if isinstance(position, int) else 0, self.gate)


class GatedReader:
    """Reads up to the gate, and on when it is open."""

    def __init__(self, elements: list[tuple[float, str]], position: int, gate: Path | None) -> None:
        self.elements = elements
        self.position = position
        self.gate = gate

    def read(self, limit: int) -> list[tuple[float, str]] | None:
        """`Reader.read`."""
        end = ELEMENTS if self.gate is None or self.gate.exists() else HALF
        found = self.elements[self.position : min(self.position + limit, end)]
        self.position += len(found)
        return found or (None if self.position == ELEMENTS else [])

    def close(self) -> None:
        """`Reader.close`."""


def pipeline(out: Path, gate: Path | None) -> Builder:
    """The pipeline."""
    builder = Builder()
    source = builder.new_source(Gated(gate)).set_num_partitions(2)
    pairs = source.event_time(lambda element: element[0], lag=0.5).key_by(key_of, lambda _: 1)
    counts = pairs.reduce_by_key_and_window(sliding_window(1, 0.5), lambda one, other: one + other)
    counts.map(line_of).to_sink(TextFolder(out / "counts"))
    counts.late.map(lambda pair: pair[0]).to_sink(TextFolder(out / "late"))
    return builder


def key_of(element: tuple[float, str]) -> str:
    """The key of an element; a function of the module beside those without a name."""
    return element[1]


def line_of(result: Any) -> str:  # noqa: ANN401  # a key and window, and the count
    """A line of the results."""
    place, count = result
    return f"{place.key} {place.window.start_us} {count}"


if __name__ == "__main__":
    options = arguments(delivery=Config.EFFECTIVELY_ONCE, containers=2)
    config = Config({"topology.stateful.checkpoint.interval.seconds": 0.3} if options.delivery > 1 else None)
    config.set_delivery_semantics(options.delivery).set_num_containers(options.containers)
    results = Path(options.out)
    Runner().run("timed_counts", config, pipeline(results, results / "go"))
