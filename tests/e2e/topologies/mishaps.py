"""Bolts and a spout whose code sometimes fails; everything else must go on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from recording import RecordBolt, arguments

from heron.api import Bolt, Grouping, Spout, TopologyBuilder, TopologyContext, Tuple

NUMBERS = 90
TIMES = 3  # number of times that each mishap happens

MISHAPS = ["division", "fields", "stream", "scalar", "unpicklable", "oversize", "key", "tick"]


class NumberSpout(Spout):
    """Emits numbers; its tenth call raises."""

    outputs = ("number",)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Starts at zero."""
        self.numbers = iter(range(NUMBERS))
        self.calls = 0

    def next_tuple(self) -> None:
        """Emits one number."""
        self.calls += 1
        if self.calls == 10:
            message = "the source is away"
            raise ConnectionError(message)
        for number in self.numbers:
            self.emit([number])
            return
        self.end()


class MishapBolt(Bolt):
    """Forwards numbers; of each ten, one of the first has the mishap of its kind."""

    outputs = ("key", "number")

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Defines the mishaps by name."""
        self.ways: dict[str, Callable[[int], object]] = {
            "division": lambda number: number / 0,
            "fields": lambda number: self.emit([number]),
            "stream": lambda number: self.emit([number, number], stream="defalt"),
            "scalar": lambda number: self.emit(number + 0),  # type: ignore[arg-type]  # a deliberate mistake
            "unpicklable": lambda number: self.emit(["lock", threading.Lock()]),
            "oversize": lambda number: self.emit(["large", "x" * 5000]),
            "key": lambda number: self.emit([["a list"], number]),
        }

    def process(self, tup: Tuple) -> None:
        """Causes one mishap or none."""
        number = tup.values[0]
        kind, turn = number % 10, number // 10
        if turn < TIMES and kind < len(MISHAPS) and MISHAPS[kind] in self.ways:
            self.ways[MISHAPS[kind]](number)
        self.emit(["good", number])


if __name__ == "__main__":
    options = arguments()
    builder = TopologyBuilder("mishaps")
    builder.set_config({"out": options.out})
    numbers = builder.add_spout("numbers", NumberSpout, par=1)
    mishap = builder.add_bolt("mishap", MishapBolt, par=1, inputs={numbers: Grouping.SHUFFLE})
    builder.add_bolt("record", RecordBolt, par=2, inputs={mishap: Grouping.fields("key")})
    builder.build_and_submit()
