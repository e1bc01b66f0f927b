"""A source of known rate, and bolts of known cost: 100 lines/s, 20 ms of processor time for each, two words each."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from recording import arguments

from heron.api import Bolt, Grouping, Spout, TopologyBuilder, TopologyContext, Tuple

LINES_PER_S = 100.0
LINE_S, WORD_S = 0.02, 0.0005


def work(seconds: float) -> None:
    """Uses this much processor time."""
    end_s = time.thread_time() + seconds
    while time.thread_time() < end_s:
        pass


class Lines(Spout):
    """Emits at a fixed pace, and ends when the file ``stop`` appears."""

    outputs = ("line",)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """The first line is due now."""
        self.stop = Path(config["out"], "stop")
        self.due_s = time.monotonic()

    def next_tuple(self) -> None:
        """Emits the line that is due."""
        if self.stop.exists():
            self.end()
        elif time.monotonic() >= self.due_s:
            self.due_s += 1.0 / LINES_PER_S
            self.emit(["to be"])

    def backlog(self) -> float:
        """The lines that are due and not emitted."""
        return max(0.0, time.monotonic() - self.due_s) * LINES_PER_S


class Split(Bolt):
    """Takes its time for each line."""

    outputs = ("word",)

    def process(self, tup: Tuple) -> None:
        """Emits the words."""
        work(LINE_S)
        for word in tup.values[0].split():
            self.emit([word])


class Count(Bolt):
    """Takes little time for each word."""

    def process(self, tup: Tuple) -> None:
        """Keeps nothing."""
        work(WORD_S)


options = arguments()
builder = TopologyBuilder("costly")
lines = builder.add_spout("lines", Lines, par=1, config={"out": options.out})
split = builder.add_bolt("split", Split, par=1, inputs={lines: Grouping.SHUFFLE})
builder.add_bolt("count", Count, par=1, inputs={split: Grouping.fields("word")})
builder.build_and_submit()
