"""A stream that can be paused: its spout records each call that begins or ends a pause, and its emits."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from recording import arguments

from heron.api import Bolt, Grouping, Spout, TopologyBuilder, TopologyContext, Tuple, api_constants


class NumberSpout(Spout):
    """Emits some hundreds of numbers a second until there is a file ``stop``; at least once."""

    outputs = ("number",)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Begins at zero."""
        self.out = Path(config["out"])
        self.file = os.open(self.out / "calls", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self.number = 0
        self.active = True
        self.note("initialize")

    def activate(self) -> None:
        """Records the end of a pause."""
        self.active = True
        self.note("activate")

    def deactivate(self) -> None:
        """Records the beginning of a pause."""
        self.active = False
        self.note(f"deactivate {self.number}")

    def next_tuple(self) -> None:
        """Emits ten numbers, then waits a little."""
        if not self.active:
            self.note("asked during a pause")
        if (self.out / "stop").exists():
            self.end()
            return
        for _ in range(10):
            self.emit([self.number], tup_id=self.number)
            self.number += 1
        time.sleep(0.05)

    def note(self, text: str) -> None:
        """Appends a line."""
        os.write(self.file, f"{text}\n".encode())


class CountBolt(Bolt):
    """Counts numbers."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Begins at zero."""
        self.count = 0
        print("counting begins", flush=True)

    def process(self, tup: Tuple) -> None:
        """Counts one."""
        self.count += 1
        self.ack(tup)


if __name__ == "__main__":
    options = arguments(stmgrs=2)
    builder = TopologyBuilder("pausing")
    builder.set_config(
        {
            api_constants.TOPOLOGY_STMGRS: options.stmgrs,
            api_constants.TOPOLOGY_RELIABILITY_MODE: "ATLEAST_ONCE",
            "out": options.out,
        }
    )
    numbers = builder.add_spout("numbers", NumberSpout, par=1)
    builder.add_bolt("count", CountBolt, par=2, inputs={numbers: Grouping.SHUFFLE})
    builder.build_and_submit()
