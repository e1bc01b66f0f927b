"""Custom groupings: words go to the shelf of their first letter, and every hundredth word to an inspector.

Run it:  heron run examples/custom_grouping.py
"""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from pydoc_data import topics
from typing import Any

from heron.api import Bolt, Grouping, ICustomGrouping, Spout, TopologyBuilder, TopologyContext, Tuple

FIRST_LETTERS = ["a", "h", "p"]  # first letters of the shelves: a to g, h to o, p to z
SAMPLE = 100


def words() -> list[str]:
    """Words of Python's documentation that begin with a letter."""
    text = " ".join(topics.topics.values()).lower()
    return [word for word in text.split() if word[0] in string.ascii_lowercase]


class ShelfGrouping(ICustomGrouping):
    """Chooses the task by the word's first letter. The topology names the class, so its arguments travel as JSON."""

    def __init__(self, first_letters: list[str]) -> None:
        self.first_letters = first_letters

    def prepare(self, context: TopologyContext, component: str, stream: str, target_tasks: Sequence[int]) -> None:
        """Store the tasks; there is one per shelf."""
        self.tasks = target_tasks

    def choose_tasks(self, values: tuple[Any, ...]) -> list[int]:
        """Return the last shelf that begins at or before the word's letter."""
        shelf = sum(first <= values[0][0] for first in self.first_letters) - 1
        return [self.tasks[shelf]]


class SampleGrouping(ICustomGrouping):
    """Sends every nth tuple and no other. The topology names an object, so each process creates it from this file."""

    def __init__(self, every: int) -> None:
        self.every = every
        self.seen = 0

    def prepare(self, context: TopologyContext, component: str, stream: str, target_tasks: Sequence[int]) -> None:
        """Store the task."""
        self.tasks = list(target_tasks)

    def choose_tasks(self, values: tuple[Any, ...]) -> list[int]:
        """Return all tasks or none."""
        self.seen += 1
        return self.tasks if self.seen % self.every == 0 else []


class WordSpout(Spout):
    """Emits words."""

    outputs = ("word",)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Start with the first word."""
        self.words = iter(words())

    def next_tuple(self) -> None:
        """Emit the next word."""
        for word in self.words:
            self.emit([word])
            return
        self.end()


class ShelfBolt(Bolt):
    """Accepts the words of some letters."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Compute the letters of this shelf."""
        bounds = [*FIRST_LETTERS, "{"]  # "{" follows "z"
        self.low, self.high = bounds[context.get_task_index() : context.get_task_index() + 2]
        self.count = 0

    def process(self, tup: Tuple) -> None:
        """Refuse a word that belongs to another shelf."""
        word = tup.values[0]
        if not self.low <= word[0] < self.high:
            message = f"{word!r} does not belong to the shelf from {self.low!r}"
            raise ValueError(message)
        self.count += 1

    def finish(self) -> None:
        """Check that no word of this shelf is missing."""
        verify(f"words from {self.low!r}", self.count, sum(self.low <= word[0] < self.high for word in words()))


class InspectBolt(Bolt):
    """Counts the sample."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Start with no word."""
        self.count = 0

    def process(self, tup: Tuple) -> None:
        """Count a word."""
        self.count += 1

    def finish(self) -> None:
        """Check the size of the sample."""
        verify("inspected words", self.count, len(words()) // SAMPLE)


def verify(what: str, found: int, expected: int) -> None:
    """Raise an error if a result is wrong."""
    if found != expected:
        message = f"{what}: {found}, expected {expected}"
        raise ValueError(message)
    print(f"{what} verified: {found}", flush=True)


def custom_grouping() -> TopologyBuilder:
    """The topology."""
    builder = TopologyBuilder("custom_grouping")
    spout = builder.add_spout("words", WordSpout, par=1)
    by_letter = Grouping.custom(ShelfGrouping, {"first_letters": FIRST_LETTERS})
    builder.add_bolt("shelf", ShelfBolt, par=len(FIRST_LETTERS), inputs={spout: by_letter})
    builder.add_bolt("inspect", InspectBolt, par=1, inputs={spout: Grouping.custom(SampleGrouping(SAMPLE))})
    return builder


if __name__ == "__main__":
    custom_grouping().build_and_submit()
