"""PacedWordCount: words at a given rate, counted by key in another container, with latencies as in LowThroughput."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

from bench_record import TICK_S, config_of, options
from low_throughput import LatencyBolt, PacedSpout
from simplified_word_count import word_block

from heron.api import Grouping, TopologyBuilder, TopologyContext, Tuple, api_constants


class PacedWordSpout(PacedSpout):
    """Emits each word when it is due."""

    outputs = ("due_s", "word")

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        super().initialize(config, context)
        self.words = cycle(word_block())

    def send(self, due_s: float) -> None:
        self.emit([due_s, next(self.words)])


class CountedLatencyBolt(LatencyBolt):
    """Counts each word and records its latency."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        super().initialize(config, context)
        self.counts: dict[str, int] = {}

    def process(self, tup: Tuple) -> None:
        word = tup.values[1]
        self.counts[word] = self.counts.get(word, 0) + 1
        super().process(tup)


EXPECTED = {"count": 1}  # per tuple that the spout reports as sent


def topology(arguments: Sequence[str]) -> TopologyBuilder:
    chosen = options(arguments, rate=1_000, containers=2)
    builder = TopologyBuilder("PacedWordCount")
    builder.set_config(config_of(chosen, rate=chosen.rate, **{api_constants.TOPOLOGY_STMGRS: chosen.containers}))
    spout = builder.add_spout("spout", PacedWordSpout, par=1)
    every = {api_constants.TOPOLOGY_TICK_TUPLE_FREQ_SECS: TICK_S}
    builder.add_bolt("last", CountedLatencyBolt, par=1, inputs={spout: Grouping.fields("word")}, config=every)
    return builder


if __name__ == "__main__":
    topology(sys.argv[1:]).build_and_submit()
