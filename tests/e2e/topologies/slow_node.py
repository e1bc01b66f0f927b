"""The topology ``journal``, whose bolts need longer for a tuple on one node.

The file ``slow-node`` in the folder of results has the name of the node. Its tasks are slow by waits, not by work, so a
test does not depend on what else the machine does.
"""

from __future__ import annotations

import os
import select
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from journal import JournalBolt, LineSpout, SplitBolt
from recording import arguments

from heron.api import Grouping, TopologyBuilder, TopologyContext, Tuple, api_constants

SLOW_S = 0.004
NODE = "SLURMD_NODENAME"  # a variable of all processes of a job


class SlowSplit(SplitBolt):
    """Splits each line into words, on the slow node later."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Remembers where the name of the slow node is."""
        super().initialize(config, context)
        self.slow = Path(config["out"], "slow-node")

    def process(self, tup: Tuple) -> None:
        """Splits a line."""
        wait_on(self.slow)
        super().process(tup)


class SlowJournal(JournalBolt):
    """Writes each received word to the journal, on the slow node later."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Opens the journal."""
        super().initialize(config, context)
        self.slow = Path(config["out"], "slow-node")

    def process(self, tup: Tuple) -> None:
        """Writes to disk, then acks."""
        wait_on(self.slow)
        super().process(tup)


def wait_on(slow: Path) -> None:
    """Wait if this process is on the node that the file names."""
    if slow.exists() and slow.read_text(encoding="utf-8") == os.environ[NODE]:
        select.select([], [], [], SLOW_S)


if __name__ == "__main__":
    options = arguments(pause=0.25)
    builder = TopologyBuilder("slow_node")
    builder.set_config(
        {
            api_constants.TOPOLOGY_STMGRS: 2,
            api_constants.TOPOLOGY_RELIABILITY_MODE: "ATLEAST_ONCE",
            api_constants.TOPOLOGY_ENABLE_MESSAGE_TIMEOUTS: False,
            api_constants.TOPOLOGY_CONTAINER_CPU_REQUESTED: 9.0,  # more than half of a node
            "out": options.out,
            "pause": options.pause,
        }
    )
    lines = builder.add_spout("lines", LineSpout, par=2)
    split = builder.add_bolt("split", SlowSplit, par=2, inputs={lines: Grouping.SHUFFLE})
    builder.add_bolt("journal", SlowJournal, par=2, inputs={split: Grouping.fields("word")})
    builder.build_and_submit()
