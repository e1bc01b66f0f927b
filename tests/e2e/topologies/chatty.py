"""Prints a line for each number, and does not end by itself."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping
from typing import Any

from recording import arguments

from heron.api import Bolt, Grouping, Spout, TopologyBuilder, TopologyContext, Tuple


class NumberSpout(Spout):
    """Emits at most a hundred numbers a second."""

    outputs = ("number",)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Begins at zero."""
        self.numbers = itertools.count()

    def next_tuple(self) -> None:
        """Emits one."""
        self.emit([next(self.numbers)])
        time.sleep(0.01)


class PrintBolt(Bolt):
    """Prints numbers."""

    def process(self, tup: Tuple) -> None:
        """Prints one."""
        print(f"number {tup.values[0]}", flush=True)


if __name__ == "__main__":
    arguments()
    builder = TopologyBuilder("chatty")
    numbers = builder.add_spout("numbers", NumberSpout, par=1)
    builder.add_bolt("print", PrintBolt, par=1, inputs={numbers: Grouping.SHUFFLE})
    builder.build_and_submit()
