"""Counts words whose number is known: 2 spouts, 3 splitters, 4 counters in 3 containers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from recording import arguments, write_result

from heron.api import Bolt, Grouping, Spout, TopologyBuilder, TopologyContext, Tuple, api_constants

WORDS_A_LINE = 10
LINES = [" ".join(f"w{(line * 7 + place * 131) % 1009}" for place in range(WORDS_A_LINE)) for line in range(1000)]


class LineSpout(Spout):
    """Emits this task's share of the lines."""

    outputs = ("line",)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Takes every nth line of n tasks."""
        lines = config["words"] // WORDS_A_LINE
        self.numbers = iter(range(context.get_task_index(), lines, context.get_parallelism()))

    def next_tuple(self) -> None:
        """Emits a line."""
        for number in self.numbers:
            self.emit([LINES[number % len(LINES)]])
            return
        self.end()


class SplitBolt(Bolt):
    """Splits lines into words."""

    outputs = ("word",)

    def process(self, tup: Tuple) -> None:
        """Splits a line."""
        for word in tup.values[0].split():
            self.emit([word])


class CountBolt(Bolt):
    """Counts words."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Starts with no count."""
        self.out, self.context = config["out"], context
        self.counts: Counter[str] = Counter()

    def process(self, tup: Tuple) -> None:
        """Counts a word."""
        self.counts[tup.values[0]] += 1

    def finish(self) -> None:
        """Writes the counts."""
        write_result(self.out, self.context, list(self.counts.items()))


if __name__ == "__main__":
    options = arguments(words=100_000, stmgrs=3)
    builder = TopologyBuilder("counting")
    builder.set_config({api_constants.TOPOLOGY_STMGRS: options.stmgrs, "out": options.out, "words": options.words})
    spout = builder.add_spout("lines", LineSpout, par=2)
    split = builder.add_bolt("split", SplitBolt, par=3, inputs={spout: Grouping.SHUFFLE})
    builder.add_bolt("count", CountBolt, par=4, inputs={split: Grouping.fields("word")})
    builder.build_and_submit()
