"""A stream that goes on until there is a file ``stop`` among the results; tests kill its processes."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from recording import arguments, write_result

from heron.api import Bolt, Grouping, Spout, TopologyBuilder, TopologyContext, Tuple, api_constants


class NumberSpout(Spout):
    """Emits some hundreds of numbers a second; on request it needs modules that no other process has."""

    outputs = ("number",)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Begins at zero."""
        self.stop = Path(config["out"], "stop")
        for module in config["needs"].split():
            import_module(module)
        self.number = 0

    def next_tuple(self) -> None:
        """Emits fifty numbers, then waits a little: each burst wakes every process."""
        if self.stop.exists():
            self.end()
            return
        for _ in range(50):
            self.emit([self.number])
            self.number += 1
        time.sleep(0.1)


class PassBolt(Bolt):
    """Forwards numbers."""

    outputs = ("number",)

    def process(self, tup: Tuple) -> None:
        """Forwards a number."""
        self.emit(tup.values)


class CountBolt(Bolt):
    """Counts numbers, and writes the count to a file every tenth of a second."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Begins at zero."""
        self.out, self.context = config["out"], context
        self.seen = 0
        self.last = -1

    def process(self, tup: Tuple) -> None:
        """Counts one."""
        self.seen += 1
        self.last = tup.values[0]

    def process_tick(self, tup: Tuple) -> None:
        """Writes the count of this process to the file."""
        Path(self.out, "progress").write_text(f"{os.getpid()} {self.seen}", encoding="utf-8")

    def finish(self) -> None:
        """Writes the count."""
        write_result(self.out, self.context, [self.seen])
        print(f"steady has counted {self.seen}", flush=True)


if __name__ == "__main__":
    options = arguments(name="steady", needs="")
    builder = TopologyBuilder(options.name)
    builder.set_config({api_constants.TOPOLOGY_STMGRS: 2, "out": options.out, "needs": options.needs})
    numbers = builder.add_spout("numbers", NumberSpout, par=1)
    passed = builder.add_bolt("pass", PassBolt, par=2, inputs={numbers: Grouping.SHUFFLE})
    every = {api_constants.TOPOLOGY_TICK_TUPLE_FREQ_SECS: 0.1}
    builder.add_bolt("count", CountBolt, par=1, inputs={passed: Grouping.SHUFFLE}, config=every)
    builder.build_and_submit()
