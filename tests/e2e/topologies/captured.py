"""Skewed words from two tasks until there is a file ``stop``, and bolts that ack, count and write the counts."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from recording import arguments, write_result

from heron.api import Bolt, Grouping, Spout, TopologyBuilder, TopologyContext, Tuple, api_constants


class WordSpout(Spout):
    """Emits some hundreds of words a second, the first ones most often."""

    outputs = ("word", "text")

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Begins at zero."""
        self.stop = Path(config["out"], "stop")
        self.number = context.get_task_index()

    def next_tuple(self) -> None:
        """Emits a few words, then waits a little."""
        if self.stop.exists():
            self.end()
            return
        for _ in range(5):
            self.number += 1
            self.emit([f"word {self.number % (1 + self.number % 7)}", "x" * 20], self.number)
        time.sleep(0.02)


class CountBolt(Bolt):
    """Counts by word; an empty file ``flows`` says that words arrive."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Has seen nothing."""
        self.out, self.context = config["out"], context
        self.counts: Counter[str] = Counter()

    def process(self, tup: Tuple) -> None:
        """Counts one."""
        if not self.counts:
            Path(self.out, "flows").touch()
        self.counts[tup.values[0]] += 1
        self.ack(tup)

    def finish(self) -> None:
        """Writes the counts."""
        write_result(self.out, self.context, sorted(self.counts.items()))


if __name__ == "__main__":
    options = arguments(mode="ATLEAST_ONCE")
    builder = TopologyBuilder("captured")
    builder.set_config({api_constants.TOPOLOGY_RELIABILITY_MODE: options.mode, "out": options.out})
    words = builder.add_spout("words", WordSpout, par=2)
    builder.add_bolt("count", CountBolt, par=2, inputs={words: Grouping.fields("word")})
    builder.build_and_submit()
