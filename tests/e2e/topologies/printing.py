"""Prints many numbered lines from two spouts and a program that each starts, and some at the end of a bolt."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from typing import Any

from recording import arguments

from heron.api import Bolt, Grouping, Spout, TopologyBuilder, TopologyContext, Tuple

A_CALL = 500  # lines
LAST_LINES = 100


class PrintSpout(Spout):
    """Prints its share of the lines, and emits one tuple for each call."""

    outputs = ("number",)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Starts at zero; a program of the system prints too."""
        self.share, self.number = config["lines"] // context.get_parallelism(), 0
        subprocess.run(["/bin/sh", "-c", "echo of a program"], check=True)

    def next_tuple(self) -> None:
        """Prints the next lines."""
        if self.number >= self.share:
            self.end()
            return
        for number in range(self.number, min(self.share, self.number + A_CALL)):
            print(f"line {number}")
        self.number += A_CALL
        self.emit([self.number])


class LastBolt(Bolt):
    """Prints when its inputs have ended."""

    def process(self, tup: Tuple) -> None:
        """Drops a tuple."""

    def finish(self) -> None:
        """Prints the last lines."""
        for number in range(LAST_LINES):
            print(f"last {number}")


if __name__ == "__main__":
    options = arguments(lines=300_000)
    builder = TopologyBuilder("printing")
    builder.set_config({"lines": options.lines})
    spout = builder.add_spout("print", PrintSpout, par=2)
    builder.add_bolt("last", LastBolt, par=1, inputs={spout: Grouping.SHUFFLE})
    builder.build_and_submit()
