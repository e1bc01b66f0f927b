"""A spout that could fill the memory, and a bolt that works on its first tuple for five seconds."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from recording import arguments, write_result

from heron.api import Bolt, Grouping, Spout, TopologyBuilder, TopologyContext, Tuple, api_constants

TUPLES = 50_000
BLOCKED_S = 5.0


class LargeSpout(Spout):
    """Emits tuples of four KiB as fast as possible."""

    outputs = ("number", "text")

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Begins at zero."""
        self.numbers = iter(range(TUPLES))

    def next_tuple(self) -> None:
        """Emits one."""
        for number in self.numbers:
            self.emit([number, f"{number:08d}" * 512])
            return
        self.end()


class SlowBolt(Bolt):
    """Blocks once, then is fast."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Records its process."""
        self.out, self.context = config["out"], context
        self.seen = self.total = 0
        with Path(self.out, "pids").open("a", encoding="utf-8") as pids:
            pids.write(f"{os.getpid()}\n")

    def process(self, tup: Tuple) -> None:
        """Blocks at the first tuple."""
        if not self.seen:
            time.sleep(BLOCKED_S)
        self.seen += 1
        self.total += tup.values[0]
        assert tup.values[1] == f"{tup.values[0]:08d}" * 512

    def finish(self) -> None:
        """Writes the result."""
        write_result(self.out, self.context, [self.seen, self.total])


if __name__ == "__main__":
    options = arguments()
    builder = TopologyBuilder("slow")
    builder.set_config({api_constants.TOPOLOGY_STMGRS: 2, "out": options.out})
    large = builder.add_spout("large", LargeSpout, par=1)
    builder.add_bolt("slow", SlowBolt, par=1, inputs={large: Grouping.SHUFFLE})
    builder.build_and_submit()
