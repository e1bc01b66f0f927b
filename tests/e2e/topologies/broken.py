"""A bolt that cannot go on: ``--where`` names the method that raises."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recording import arguments

from heron.api import Bolt, Grouping, Spout, TopologyBuilder, TopologyContext, Tuple, api_constants
from heron.api.component import BoltCollector


class OneSpout(Spout):
    """Emits one tuple."""

    outputs = ("number",)

    def next_tuple(self) -> None:
        """Emits, and ends."""
        self.emit([1])
        self.end()


class BrokenBolt(Bolt):
    """Raises in one method."""

    where = "constructor"

    def __init__(self, delegate: BoltCollector) -> None:
        super().__init__(delegate)
        if WHERE == "constructor":
            self.give_up()

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Raises if selected."""
        if WHERE == "initialize":
            self.give_up()

    def process(self, tup: Tuple) -> None:
        """Raises if selected."""
        if WHERE == "process":
            self.give_up()

    def finish(self) -> None:
        """Raises if selected."""
        if WHERE == "finish":
            self.give_up()

    def give_up(self) -> None:
        """Raises."""
        message = "the table of prices is missing"
        raise LookupError(message)


options = arguments(where="constructor")
WHERE = options.where
builder = TopologyBuilder("broken")
builder.set_config({"out": options.out})
spout = builder.add_spout("one", OneSpout, par=1)
stop = {api_constants.TOPOLOGY_ON_ERROR: "stop"} if WHERE == "process" else {}
builder.add_bolt("prices", BrokenBolt, par=1, inputs={spout: Grouping.SHUFFLE}, config=stop)

if __name__ == "__main__":
    builder.build_and_submit()
