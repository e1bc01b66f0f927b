"""FourFields: rows of four fields (str, int, float, str) to four tasks, by the first field."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

from bench_record import TICK_S, config_of, options, repeated
from simplified_word_count import EXPECTED, word_block
from word_bolts import AckedCountBolt, CountBolt

from heron.api import Grouping, Spout, TopologyBuilder, TopologyContext, api_constants

__all__ = ["EXPECTED", "RowSpout", "topology"]


class RowSpout(Spout):
    """Emits one row per word."""

    outputs = ("word", "number", "share", "tag")

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        rows = [(word, number, number / 7, f"tag{number % 10}") for number, word in enumerate(word_block())]
        self.rows = repeated(rows, config, context)

    def next_tuple(self) -> None:
        for row in self.rows:
            self.emit(row)
            return
        self.end()


class AckedRowSpout(RowSpout):
    """Emits each row with an id."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        super().initialize(config, context)
        self.next_id = count().__next__

    def next_tuple(self) -> None:
        for row in self.rows:
            self.emit(row, self.next_id())
            return
        self.end()


def topology(arguments: Sequence[str]) -> TopologyBuilder:
    chosen = options(arguments)
    builder = TopologyBuilder("FourFields")
    builder.set_config(config_of(chosen))
    spout_class, bolt_class = (AckedRowSpout, AckedCountBolt) if chosen.atleast else (RowSpout, CountBolt)
    rows = builder.add_spout("rows", spout_class, par=1)
    every = {api_constants.TOPOLOGY_TICK_TUPLE_FREQ_SECS: TICK_S}
    builder.add_bolt("last", bolt_class, par=4, inputs={rows: Grouping.fields("word")}, config=every)
    return builder


if __name__ == "__main__":
    topology(sys.argv[1:]).build_and_submit()
