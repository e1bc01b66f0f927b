"""PoisonRecords: SimplifiedWordCount at least once. The bolt raises for every hundredth word while a file exists.

Each error has a text of its own, as errors that name their record.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench_record import TICK_S, config_of, options
from simplified_word_count import AckedWordSpout, word_block
from word_bolts import CountBolt

from heron.api import Grouping, TopologyBuilder, TopologyContext, Tuple, api_constants

ATTEMPTS = 3
POISON_FILE, RAISED_FILE = "poison", "raised"
POISON = frozenset(word_block()[::100])
EXPECTED = {word: 1 for word in word_block() if word not in POISON}


class PoisonBolt(CountBolt):
    """Counts and acks the words that are not poison. It raises for the others, or only acks them."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        super().initialize(config, context)
        self.folder = Path(config["folder"])
        self.raises = False
        self.failures = 0

    def process(self, tup: Tuple) -> None:
        word = tup.values[0]
        if word not in POISON:
            self.counts[word] = self.counts.get(word, 0) + 1
        elif self.raises:
            self.failures += 1
            message = f"{word} is poison, failure {self.failures}"
            raise ValueError(message)
        self.ack(tup)

    def process_tick(self, tup: Tuple) -> None:
        super().process_tick(tup)
        self.raises = (self.folder / POISON_FILE).exists()

    def finish(self) -> None:
        super().finish()
        (self.folder / RAISED_FILE).write_text(str(self.failures), encoding="utf-8")


def topology(arguments: Sequence[str]) -> TopologyBuilder:
    chosen = options(arguments, replay=0)
    builder = TopologyBuilder("PoisonRecords")
    replay = {api_constants.TOPOLOGY_REPLAY_ATTEMPTS: ATTEMPTS - 1} if chosen.replay else {}
    builder.set_config(config_of(chosen, **replay))
    words = builder.add_spout("words", AckedWordSpout, par=1)
    every = {api_constants.TOPOLOGY_TICK_TUPLE_FREQ_SECS: TICK_S}
    builder.add_bolt("last", PoisonBolt, par=1, inputs={words: Grouping.fields("word")}, config=every)
    return builder


if __name__ == "__main__":
    topology(sys.argv[1:]).build_and_submit()
