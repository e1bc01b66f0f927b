"""A bolt that ends its process once: ``--where`` names the way."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from recording import arguments

from heron.api import Bolt, Grouping, Spout, TopologyBuilder, TopologyContext, Tuple


class NumberSpout(Spout):
    """Emits numbers until each has been processed."""

    outputs = ("number",)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """All numbers are to be emitted."""
        self.todo = list(range(20))
        self.open = 20

    def next_tuple(self) -> None:
        """Emits one number."""
        if self.todo:
            number = self.todo.pop()
            self.emit([number], tup_id=[number])
        elif not self.open:
            self.end()

    def ack(self, tup_id: object) -> None:
        """Counts it."""
        self.open -= 1

    def fail(self, tup_id: object) -> None:
        """Emits it again."""
        assert isinstance(tup_id, list)
        self.todo += tup_id


class ExitingBolt(Bolt):
    """Ends the process of its first incarnation at the number 7."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Knows by a file whether it has ended before."""
        self.before = Path(config["out"]) / "ended"

    def process(self, tup: Tuple) -> None:
        """Ends the process, or acks."""
        if tup.values[0] == 7 and not self.before.exists():
            self.before.touch()
            leave()
        self.ack(tup)


def leave() -> None:
    """Ends the process."""
    if WHERE == "os":
        os._exit(3)
    if WHERE == "thread":
        threading.Thread(target=threading.Event().wait, name="poller").start()
    if WHERE == "streams":
        sys.stderr.close()
        sys.stdout = None  # what authors do
        message = "after the streams"
        raise LookupError(message)
    sys.exit(3)


options = arguments(where="exit")
WHERE = options.where
builder = TopologyBuilder("exiting")
builder.set_config(
    {"out": options.out, "topology.reliability.mode": "ATLEAST_ONCE", "topology.message.timeout.secs": 60}
)
numbers = builder.add_spout("numbers", NumberSpout, par=1)
builder.add_bolt("exiting", ExitingBolt, par=1, inputs={numbers: Grouping.SHUFFLE})

if __name__ == "__main__":
    builder.build_and_submit()
