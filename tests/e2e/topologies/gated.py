"""A source of two partitions that waits in their middle for a test."""

from __future__ import annotations

import random
from pathlib import Path

from heron_streamlet import Reader, Source, StageContext

ELEMENTS = 6_000
HALF = ELEMENTS // 2
PARTITIONS = ("one", "two")

Element = tuple[float, str]


def elements(partition: str) -> list[Element]:
    """The time and key of each element; a few are far behind the others."""
    chance = random.Random(partition)
    return [
        (number / 1000 - (3.0 if chance.random() < 0.01 else chance.random() / 4), f"k{chance.randrange(20)}")
        for number in range(ELEMENTS)
    ]


class Gated(Source[Element]):
    """Reads the second half when the gate, a file, exists; without a gate it does not wait.

    The last element waits while there is a file ``hold`` beside the gate, so a test can do more before the end.
    """

    def __init__(self, gate: Path | None) -> None:
        self.gate = gate

    def partitions(self, tasks: int) -> list[str]:
        """`Source.partitions`."""
        del tasks
        return list(PARTITIONS)

    def open(self, partition: str, position: object, context: StageContext) -> Reader[Element]:
        """`Source.open`."""
        del context
        return GatedReader(elements(partition), position if isinstance(position, int) else 0, self.gate)


class GatedReader:
    """Reads up to the gate, and on when it is open."""

    def __init__(self, elements: list[Element], position: int, gate: Path | None) -> None:
        self.elements = elements
        self.position = position
        self.gate = gate

    def read(self, limit: int) -> list[Element] | None:
        """`Reader.read`."""
        end = ELEMENTS
        if self.gate is not None:
            end = ELEMENTS - self.gate.with_name("hold").exists() if self.gate.exists() else HALF
        found = self.elements[self.position : min(self.position + limit, end)]
        self.position += len(found)
        return found or (None if self.position == ELEMENTS else [])

    def close(self) -> None:
        """`Reader.close`."""


def key_of(element: Element) -> str:
    """The key of an element; a function of a module beside those without a name."""
    return element[1]
