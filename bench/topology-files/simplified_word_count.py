"""SimplifiedWordCount: words of a list of 5,000, counted by key. One spout, one bolt."""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

from bench_record import TICK_S, config_of, options, repeated
from word_bolts import AckedCountBolt, CountBolt

from heron.api import Grouping, Spout, TopologyBuilder, TopologyContext, api_constants

DISTINCT = 5_000


def word_block() -> list[str]:
    """Return every word once, in a random order that is always the same."""
    words = [f"word{number}" for number in range(DISTINCT)]
    random.Random(1).shuffle(words)
    return words


EXPECTED = dict(Counter(word_block()))


class WordSpout(Spout):
    """Emits the words of the list repeatedly."""

    outputs = ("word",)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        self.words = repeated(word_block(), config, context)

    def next_tuple(self) -> None:
        for word in self.words:
            self.emit([word])
            return
        self.end()


class AckedWordSpout(WordSpout):
    """Emits each word with an id."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        super().initialize(config, context)
        self.next_id = count().__next__

    def next_tuple(self) -> None:
        for word in self.words:
            self.emit([word], self.next_id())
            return
        self.end()


class AckCountingWordSpout(AckedWordSpout):
    """Overrides `ack`, so the engine calls it for each word."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        super().initialize(config, context)
        self.acks = 0

    def ack(self, tup_id: object) -> None:
        self.acks += 1


def topology(arguments: Sequence[str]) -> TopologyBuilder:
    chosen = options(arguments, spouts=1, bolts=1, acks=0, containers=1)
    builder = TopologyBuilder("SimplifiedWordCount")
    builder.set_config(config_of(chosen, **{api_constants.TOPOLOGY_STMGRS: chosen.containers}))
    spout_class, bolt_class = (AckedWordSpout, AckedCountBolt) if chosen.atleast else (WordSpout, CountBolt)
    if chosen.acks and chosen.atleast:
        spout_class = AckCountingWordSpout
    words = builder.add_spout("words", spout_class, par=chosen.spouts)
    every = {api_constants.TOPOLOGY_TICK_TUPLE_FREQ_SECS: TICK_S}
    builder.add_bolt("last", bolt_class, par=chosen.bolts, inputs={words: Grouping.fields("word")}, config=every)
    return builder


if __name__ == "__main__":
    topology(sys.argv[1:]).build_and_submit()
