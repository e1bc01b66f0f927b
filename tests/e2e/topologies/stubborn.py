"""Makes its processes hard to end: they block, spin, ignore signals and start programs."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from recording import arguments

from heron.api import Bolt, Grouping, Spout, TopologyBuilder, TopologyContext, Tuple


class BlockedSpout(Spout):
    """Emits once and never returns from a later call."""

    outputs = ("number",)
    calls = 0

    def next_tuple(self) -> None:
        """Emits, does nothing for a while, or blocks."""
        self.calls += 1
        if self.calls == 1:
            self.emit([1])
        elif self.calls > 20:
            time.sleep(3600)


class SpinningBolt(Bolt):
    """Ignores signals where possible, starts a program, and spins."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Starts the program."""
        self.out = Path(config["out"])
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self.program = subprocess.Popen(["sleep", "3600"])

    def process(self, tup: Tuple) -> None:
        """Spins."""
        (self.out / "progress").touch()
        while self.program.poll() is None:
            pass


if __name__ == "__main__":
    options = arguments()
    builder = TopologyBuilder("stubborn")
    builder.set_config({"out": options.out})
    spout = builder.add_spout("blocked", BlockedSpout, par=1)
    builder.add_bolt("spinning", SpinningBolt, par=1, inputs={spout: Grouping.SHUFFLE})
    builder.build_and_submit()
