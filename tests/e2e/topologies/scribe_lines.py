"""A Scribe collector of two tasks, and bolts that write its messages to files, by each delivery.

Effectively once the lines are committed with their checkpoint; otherwise they are in the file ``journal``. While there
is a file ``slow`` among the results, a bolt writes ten lines a second.
"""

from __future__ import annotations

import os
import select
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from exactly_once import CommitBolt
from journal import appending
from recording import arguments

from heron.api import Bolt, Grouping, TopologyBuilder, TopologyContext, TopologyReliabilityMode, Tuple, api_constants
from heron_connector_scribe import ScribeSpout, ServiceOptions


class JournalBolt(Bolt):
    """Writes each message to the journal, then acks."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Opens the journal."""
        self.file, self.slow = appending(Path(config["out"], "journal")), Path(config["out"], "slow")

    def process(self, tup: Tuple) -> None:
        """Writes a line."""
        if self.slow.exists():
            select.select([], [], [], 0.1)
        category, partition, message = tup.values
        os.write(self.file, b"%s %d %s" % (category.encode(), partition, message))
        self.ack(tup)


if __name__ == "__main__":
    options = arguments(mode="ATLEAST_ONCE", ports="0", pending=5000, queue=1.0, interval=0.0)
    exact = options.mode == TopologyReliabilityMode.EFFECTIVELY_ONCE
    interval_s = options.interval or (0.5 if exact else 0.0)
    builder = TopologyBuilder("scribe_lines")
    builder.set_config(
        {
            api_constants.TOPOLOGY_STMGRS: 2,
            api_constants.TOPOLOGY_RELIABILITY_MODE: options.mode,
            api_constants.TOPOLOGY_MAX_SPOUT_PENDING: options.pending,
            **({api_constants.TOPOLOGY_STATEFUL_CHECKPOINT_INTERVAL_SECONDS: interval_s} if interval_s else {}),
            "out": options.out,
        }
    )
    service = ServiceOptions(
        ports=tuple(map(int, options.ports.split(","))),
        announce=str(Path(options.out, "collectors")),
        partitions={"facebook": 4},
        queue_s=options.queue,
    )
    lines = builder.add_spout("lines", ScribeSpout, par=2, config=service.config())
    builder.add_bolt("journal", CommitBolt if exact else JournalBolt, par=2, inputs={lines: Grouping.SHUFFLE})
    builder.build_and_submit()
