"""The topology ``counting`` at least once: every tuple is anchored and acked, and the spouts count their acks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from recording import arguments, write_result

from heron.api import Bolt, Grouping, Spout, TopologyBuilder, TopologyContext, Tuple, api_constants

WORDS_A_LINE = 10
LINES = [" ".join(f"w{(line * 7 + place * 131) % 1009}" for place in range(WORDS_A_LINE)) for line in range(1000)]


class LineSpout(Spout):
    """Emits this task's share of the lines and counts the acks."""

    outputs = ("line",)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Takes every nth line of n tasks."""
        self.out, self.context = config["out"], context
        lines = config["words"] // WORDS_A_LINE
        self.numbers = iter(range(context.get_task_index(), lines, context.get_parallelism()))
        self.acked = self.failed = 0

    def next_tuple(self) -> None:
        """Emits a line."""
        for number in self.numbers:
            self.emit([LINES[number % len(LINES)]], tup_id=number)
            return
        self.end()

    def ack(self, tup_id: Any) -> None:  # noqa: ANN401  # the id may have any type
        """All words of one line are counted."""
        self.acked += 1

    def fail(self, tup_id: Any) -> None:  # noqa: ANN401
        """Must not happen: a replay would count twice."""
        self.failed += 1

    def close(self) -> None:
        """Writes both numbers."""
        write_result(self.out, self.context, [self.acked, self.failed])


class SplitBolt(Bolt):
    """Splits lines into words."""

    outputs = ("word",)

    def process(self, tup: Tuple) -> None:
        """Splits a line."""
        for word in tup.values[0].split():
            self.emit([word], anchors=[tup])
        self.ack(tup)


class CountBolt(Bolt):
    """Counts words."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Starts with no count."""
        self.out, self.context = config["out"], context
        self.counts: Counter[str] = Counter()

    def process(self, tup: Tuple) -> None:
        """Counts a word."""
        self.counts[tup.values[0]] += 1
        self.ack(tup)

    def finish(self) -> None:
        """Writes the counts."""
        write_result(self.out, self.context, list(self.counts.items()))


if __name__ == "__main__":
    options = arguments(words=100_000, stmgrs=3)
    builder = TopologyBuilder("acked_counting")
    builder.set_config(
        {
            api_constants.TOPOLOGY_STMGRS: options.stmgrs,
            api_constants.TOPOLOGY_RELIABILITY_MODE: api_constants.TopologyReliabilityMode.ATLEAST_ONCE,
            "out": options.out,
            "words": options.words,
        }
    )
    spout = builder.add_spout("lines", LineSpout, par=2)
    split = builder.add_bolt("split", SplitBolt, par=3, inputs={spout: Grouping.SHUFFLE})
    builder.add_bolt("count", CountBolt, par=4, inputs={split: Grouping.fields("word")})
    builder.build_and_submit()
