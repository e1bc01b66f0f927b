"""Two independent streams; the bolt of one dies until a file ``cured`` exists."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from recording import arguments

from heron.api import Bolt, Grouping, Spout, TopologyBuilder, TopologyContext, Tuple, api_constants


class NumberSpout(Spout):
    """Emits numbers with a long text."""

    outputs = ("number", "text")

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Begins at zero."""
        self.stop = Path(config["out"], "stop")
        self.number = 0

    def next_tuple(self) -> None:
        """Emits ten numbers, then waits a little."""
        if self.stop.exists():
            self.end()
            return
        for _ in range(10):
            self.emit([self.number, "x" * 200], tup_id=self.number)
            self.number += 1
        time.sleep(0.05)


class SoundBolt(Bolt):
    """Writes its count to a file every tenth of a second."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Begins at zero."""
        self.progress = Path(config["out"], f"progress-{context.get_component_id()}")
        self.cured = Path(config["out"], "cured")
        self.seen = 0

    def process(self, tup: Tuple) -> None:
        """Counts one."""
        self.seen += 1
        self.ack(tup)

    def process_tick(self, tup: Tuple) -> None:
        """Writes the count to the file."""
        self.progress.write_text(str(self.seen), encoding="utf-8")


class FragileBolt(SoundBolt):
    """Dies at its first tuple."""

    def process(self, tup: Tuple) -> None:
        """Exits, as a library without its licence server might."""
        if not self.cured.exists():
            print("the table of prices is missing", file=sys.stderr, flush=True)
            os._exit(7)
        super().process(tup)


if __name__ == "__main__":
    options = arguments()
    builder = TopologyBuilder("given_up")
    builder.set_config(
        {
            api_constants.TOPOLOGY_STMGRS: 2,
            api_constants.TOPOLOGY_RELIABILITY_MODE: "ATLEAST_ONCE",
            api_constants.TOPOLOGY_ENABLE_MESSAGE_TIMEOUTS: False,
            "out": options.out,
        }
    )
    every = {api_constants.TOPOLOGY_TICK_TUPLE_FREQ_SECS: 0.1}
    for kind, bolt in (("fragile", FragileBolt), ("sound", SoundBolt)):
        spout = builder.add_spout(f"to_{kind}", NumberSpout, par=1)
        builder.add_bolt(kind, bolt, par=1, inputs={spout: Grouping.SHUFFLE}, config=every)
    builder.build_and_submit()
