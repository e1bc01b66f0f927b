"""FileReadWordCount: lines of a text, split, counted by word: 2 + 3 + 4 tasks. The text ships inside Python."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pydoc_data import topics
from typing import Any

from bench_record import TICK_S, options, repeated
from word_bolts import CountBolt

from heron.api import Bolt, Grouping, Spout, TopologyBuilder, TopologyContext, Tuple, api_constants


def lines_of_text() -> list[str]:
    """The documentation's lines that are not blank."""
    return [line for text in topics.topics.values() for line in text.splitlines() if line.strip()]


EXPECTED = dict(Counter(word for line in lines_of_text() for word in line.split()))


class FileReadSpout(Spout):
    """Emits the lines of the text again and again."""

    outputs = ("line",)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        self.lines = repeated(lines_of_text(), config, context)

    def next_tuple(self) -> None:
        for line in self.lines:
            self.emit([line])
            return
        self.end()


class SplitSentenceBolt(Bolt):
    """Splits lines into words."""

    outputs = ("word",)

    def process(self, tup: Tuple) -> None:
        for word in tup.values[0].split():
            self.emit([word])


def topology(arguments: Sequence[str]) -> TopologyBuilder:
    chosen = options(arguments, containers=2)
    builder = TopologyBuilder("FileReadWordCount")
    config = {"folder": chosen.folder, "rounds": chosen.rounds}
    builder.set_config({api_constants.TOPOLOGY_STMGRS: chosen.containers, **config})
    lines = builder.add_spout("lines", FileReadSpout, par=2)
    split = builder.add_bolt("split", SplitSentenceBolt, par=3, inputs={lines: Grouping.SHUFFLE})
    every = {api_constants.TOPOLOGY_TICK_TUPLE_FREQ_SECS: TICK_S}
    builder.add_bolt("last", CountBolt, par=4, inputs={split: Grouping.fields("word")}, config=every)
    return builder


if __name__ == "__main__":
    topology(sys.argv[1:]).build_and_submit()
