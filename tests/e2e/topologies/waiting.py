"""A source of known rate, and a bolt that waits 20 ms for each line, as for a service: it needs no processor."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from recording import arguments

from heron.api import Bolt, Grouping, Spout, TopologyBuilder, TopologyContext, Tuple

LINES_PER_S = 120.0
LINE_S = 0.02


class Lines(Spout):
    """Emits at a fixed pace, and ends when the file ``stop`` appears."""

    outputs = ("line",)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """The first line is due now."""
        self.stop = Path(config["out"], "stop")
        self.due_s = time.monotonic()

    def next_tuple(self) -> None:
        """Emits the line that is due; a source that was held back is not faster afterwards."""
        now_s = time.monotonic()
        if self.stop.exists():
            self.end()
        elif now_s >= self.due_s:
            self.due_s = max(self.due_s + 1.0 / LINES_PER_S, now_s - 0.1)
            self.emit(["to be"], tup_id=self.due_s)


class Split(Bolt):
    """Waits for each line."""

    outputs = ("word",)

    def process(self, tup: Tuple) -> None:
        """Emits the words."""
        time.sleep(LINE_S)
        for word in tup.values[0].split():
            self.emit([word])
        self.ack(tup)


class Count(Bolt):
    """Costs nothing."""

    def process(self, tup: Tuple) -> None:
        """Keeps nothing."""


options = arguments(split=1)
builder = TopologyBuilder("waiting")
lines = builder.add_spout("lines", Lines, par=1, config={"out": options.out})
split = builder.add_bolt("split", Split, par=options.split, inputs={lines: Grouping.SHUFFLE})
builder.add_bolt("count", Count, par=1, inputs={split: Grouping.fields("word")})
builder.build_and_submit()
