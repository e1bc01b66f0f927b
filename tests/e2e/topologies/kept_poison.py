"""Numbers effectively once, whose every fifth fails in a bolt and is kept with its checkpoints.

The spout ends when there is a file ``end`` among the results. With a file ``mended`` the bolt fails nothing.
"""

from __future__ import annotations

import select
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from recording import arguments, write_result

from heron.api import Bolt, CounterState, Grouping, Spout, TopologyBuilder, TopologyContext, Tuple, api_constants

options = arguments(interval=0.3)


class NumberSpout(Spout):
    """Emits numbers, its position is keyed state."""

    outputs = ("number",)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Continues at its position."""
        self.end_file = Path(config["out"], "end")
        self.position = context.keyed_state("position", CounterState)

    def next_tuple(self) -> None:
        """Emits a number each 2 ms."""
        if self.end_file.exists():
            self.end()
            return
        select.select([], [], [], 0.002)
        self.emit([self.position.add(0) - 1])


class CheckBolt(Bolt):
    """Counts the numbers that it processed in keyed state."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Takes its state."""
        self.out, self.context = config["out"], context
        self.mended = Path(self.out, "mended")
        self.done = context.keyed_state("done", CounterState)

    def process(self, tup: Tuple) -> None:
        """Raises for each tenth number, and fails each fifth."""
        (number,) = tup.values
        if number % 5 == 0 and not self.mended.exists():
            if number % 10:
                self.fail(tup)
                return
            message = f"poison {number}"
            raise ValueError(message)
        self.done.add(number)

    def finish(self) -> None:
        """Writes how often each number was processed."""
        write_result(self.out, self.context, sorted(self.done.items()))


builder = TopologyBuilder("kept_poison")
builder.set_config(
    {
        api_constants.TOPOLOGY_RELIABILITY_MODE: "EFFECTIVELY_ONCE",
        api_constants.TOPOLOGY_STATEFUL_CHECKPOINT_INTERVAL_SECONDS: options.interval,
        api_constants.TOPOLOGY_ON_ERROR: "dead_letter",
        "out": options.out,
    }
)
numbers = builder.add_spout("numbers", NumberSpout, par=1)
builder.add_bolt("check", CheckBolt, par=1, inputs={numbers: Grouping.fields("number")})

if __name__ == "__main__":
    builder.build_and_submit()
