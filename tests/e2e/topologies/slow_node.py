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

from heron.api import Bolt, Grouping, TopologyBuilder, TopologyContext, Tuple, api_constants

SLOW_S = 0.004
NODE = "SLURMD_NODENAME"  # a variable of all processes of a job


class Slow(Bolt):
    """Is in front of a bolt that waits before each tuple while it is on the slow node."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Remembers where the name of the slow node is."""
        super().initialize(config, context)
        self.slow = Path(config["out"], "slow-node")

    def process(self, tup: Tuple) -> None:
        """Waits, if its node is the slow one."""
        if self.slow.exists() and self.slow.read_text(encoding="utf-8") == os.environ[NODE]:
            select.select([], [], [], SLOW_S)
        super().process(tup)  # of the bolt behind it


class SlowSplit(Slow, SplitBolt):
    """Splits each line into words."""


class SlowJournal(Slow, JournalBolt):
    """Writes each received word to the journal."""


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
