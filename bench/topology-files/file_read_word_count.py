"""FileReadWordCount: lines of a text, split and counted by word: 2 + 3 + 4 tasks. The text is part of Python."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import count
from pydoc_data import topics
from typing import Any

from bench_record import TICK_S, config_of, options, repeated
from word_bolts import AckedCountBolt, CountBolt

from heron.api import Bolt, Grouping, Spout, TopologyBuilder, TopologyContext, Tuple, api_constants


def lines_of_text() -> list[str]:
    """Return the non-blank lines of Python's documentation."""
    return [line for text in topics.topics.values() for line in text.splitlines() if line.strip()]


EXPECTED = dict(Counter(word for line in lines_of_text() for word in line.split()))


class FileReadSpout(Spout):
    """Emits the lines of the text repeatedly."""

    outputs = ("line",)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        self.lines = repeated(lines_of_text(), config, context)

    def next_tuple(self) -> None:
        for line in self.lines:
            self.emit([line])
            return
        self.end()


class AckedFileReadSpout(FileReadSpout):
    """Emits each line with an id."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        super().initialize(config, context)
        self.next_id = count().__next__

    def next_tuple(self) -> None:
        for line in self.lines:
            self.emit([line], self.next_id())
            return
        self.end()


class SplitSentenceBolt(Bolt):
    """Splits lines into words."""

    outputs = ("word",)

    def process(self, tup: Tuple) -> None:
        for word in tup.values[0].split():
            self.emit([word])


class AckedSplitSentenceBolt(SplitSentenceBolt):
    """Anchors the words to their line, and acks the line."""

    def process(self, tup: Tuple) -> None:
        anchors = [tup]
        for word in tup.values[0].split():
            self.emit([word], anchors=anchors)
        self.ack(tup)


def topology(arguments: Sequence[str]) -> TopologyBuilder:
    chosen = options(arguments, containers=2)
    builder = TopologyBuilder("FileReadWordCount")
    builder.set_config({api_constants.TOPOLOGY_STMGRS: chosen.containers, **config_of(chosen)})
    plain, acked = (
        (FileReadSpout, SplitSentenceBolt, CountBolt),
        (AckedFileReadSpout, AckedSplitSentenceBolt, AckedCountBolt),
    )
    spout_class, split_class, count_class = acked if chosen.atleast else plain
    lines = builder.add_spout("lines", spout_class, par=2)
    split = builder.add_bolt("split", split_class, par=3, inputs={lines: Grouping.SHUFFLE})
    every = {api_constants.TOPOLOGY_TICK_TUPLE_FREQ_SECS: TICK_S}
    builder.add_bolt("last", count_class, par=4, inputs={split: Grouping.fields("word")}, config=every)
    return builder


if __name__ == "__main__":
    topology(sys.argv[1:]).build_and_submit()
