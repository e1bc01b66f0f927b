"""A spout that is much faster than its bolt, until the bolt recovers."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from recording import arguments, write_result

from heron.api import Bolt, Grouping, Spout, TopologyBuilder, TopologyContext, Tuple

TUPLE_BYTES = 200


class QuickSpout(Spout):
    """Emits until the bolt has recovered, and then another million bytes."""

    outputs = ("number", "text")

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Begins at zero."""
        self.number, self.left = 0, 5000
        self.recovered = Path(config["out"], "recovered")

    def next_tuple(self) -> None:
        """Emits one."""
        if self.number % 1000 == 0 and not self.recovered.exists():
            self.left += 1000
        if not self.left:
            self.end()
            return
        self.left -= 1
        self.emit([self.number, "x" * TUPLE_BYTES])
        self.number += 1


class SlowBolt(Bolt):
    """Takes a millisecond per tuple until a file exists."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Starts slow."""
        self.out, self.context = config["out"], context
        self.recovered = Path(config["out"], "recovered")
        self.slow = True
        self.seen = 0

    def process(self, tup: Tuple) -> None:
        """Counts a tuple and checks the order."""
        assert tup.values[0] == self.seen
        self.seen += 1
        if self.slow:
            time.sleep(0.001)
            self.slow = not self.recovered.exists()

    def finish(self) -> None:
        """Writes the result."""
        write_result(self.out, self.context, [self.seen])


if __name__ == "__main__":
    options = arguments()
    builder = TopologyBuilder("recovering")
    builder.set_config({"out": options.out})
    quick = builder.add_spout("quick", QuickSpout, par=1)
    builder.add_bolt("slow", SlowBolt, par=1, inputs={quick: Grouping.SHUFFLE})
    builder.build_and_submit()
