"""A count of words that goes on until there is a file ``stop`` among the results; its counts are then exact."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from recording import arguments, write_result

from heron.api import Bolt, Grouping, Spout, TopologyBuilder, TopologyContext, Tuple, api_constants

LINE = "the quick brown fox and the lazy dog"


class LineSpout(Spout):
    """Emits the same line some thousand times a second."""

    outputs = ("line",)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Begins at zero."""
        self.out, self.context = config["out"], context
        self.emitted = 0

    def next_tuple(self) -> None:
        """Emits the line five times, then waits a little."""
        if self.emitted % 100 == 0 and Path(self.out, "stop").exists():
            write_result(self.out, self.context, [[self.emitted]])
            self.end()
            return
        for _ in range(5):
            self.emit([LINE])
            self.emitted += 1
        time.sleep(0.004)


class AsideSpout(Spout):
    """Emits nothing, so the loss of its container loses no word."""

    outputs = ("nothing",)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Reads when to end."""
        self.stop = Path(config["out"], "stop")

    def next_tuple(self) -> None:
        """Waits a little."""
        if self.stop.exists():
            self.end()
        time.sleep(0.01)


class SplitBolt(Bolt):
    """Splits lines into words."""

    outputs = ("word",)

    def process(self, tup: Tuple) -> None:
        """Splits a line."""
        for word in tup.values[0].split():
            self.emit([word])


class CountBolt(Bolt):
    """Counts words, and writes the count to a file every tenth of a second."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Starts with no count."""
        self.out, self.context = config["out"], context
        self.counts: Counter[str] = Counter()

    def process(self, tup: Tuple) -> None:
        """Counts a word."""
        self.counts[tup.values[0]] += 1

    def process_tick(self, tup: Tuple) -> None:
        """Writes the count of this task to the file."""
        text = str(self.counts.total())
        Path(self.out, f"progress-{self.context.get_task_id()}").write_text(text, encoding="utf-8")

    def finish(self) -> None:
        """Writes the counts."""
        write_result(self.out, self.context, list(self.counts.items()))


if __name__ == "__main__":
    options = arguments(name="steady_words", aside=0)
    builder = TopologyBuilder(options.name)
    builder.set_config({api_constants.TOPOLOGY_STMGRS: 2 + options.aside, "out": options.out})
    lines = builder.add_spout("lines", LineSpout, par=1)
    split = builder.add_bolt("split", SplitBolt, par=2 - options.aside, inputs={lines: Grouping.SHUFFLE})
    if options.aside:  # round robin places it alone in container 3
        builder.add_spout("aside", AsideSpout, par=1)
    every = {api_constants.TOPOLOGY_TICK_TUPLE_FREQ_SECS: 0.1}
    builder.add_bolt("count", CountBolt, par=2, inputs={split: Grouping.fields("word")}, config=every)
    builder.build_and_submit()
