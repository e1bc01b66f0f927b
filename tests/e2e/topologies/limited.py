"""Two spouts with a common limit of bytes a second, and a bolt that records arrival times."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from recording import arguments, write_result

from heron.api import Bolt, Grouping, Spout, TopologyBuilder, TopologyContext, Tuple, api_constants

SPOUTS = 2
TUPLES = 500  # of each
TUPLE_BYTES = 1000


class LimitedSpout(Spout):
    """Emits everything at once if allowed."""

    outputs = ("number", "text", "emitted_s")

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Begins at zero."""
        self.numbers = iter(range(TUPLES))

    def next_tuple(self) -> None:
        """Emits one."""
        for number in self.numbers:
            self.emit([number, f"{number:08d}" * (TUPLE_BYTES // 8), time.monotonic()], tup_id=number)
            return
        self.end()


class TimesBolt(Bolt):
    """Records the times of each tuple, and acks it."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Starts with no record."""
        self.out, self.context = config["out"], context
        self.rows: list[list[float]] = []

    def process(self, tup: Tuple) -> None:
        """Records a tuple."""
        self.rows.append([time.monotonic(), tup.task, tup.values[0], tup.values[2]])
        self.ack(tup)

    def finish(self) -> None:
        """Writes the records."""
        write_result(self.out, self.context, self.rows)


if __name__ == "__main__":
    options = arguments(bps=0)
    builder = TopologyBuilder("limited")
    builder.set_config(
        {
            api_constants.TOPOLOGY_RELIABILITY_MODE: "ATLEAST_ONCE",
            api_constants.TOPOLOGY_MESSAGE_TIMEOUT_SECS: 3,
            "out": options.out,
        }
    )
    limit = {api_constants.TOPOLOGY_COMPONENT_OUTPUT_BPS: options.bps}
    limited = builder.add_spout("limited", LimitedSpout, par=SPOUTS, config=limit)
    builder.add_bolt("times", TimesBolt, par=1, inputs={limited: Grouping.SHUFFLE})
    builder.build_and_submit()
