"""Count words in columns: batches of words between processes, as Apache Arrow record batches.

    pip install heron-serializer-arrow
    heron run examples/columns/count_words.py

The same topology in rows is examples/word_count.py. docs/columns.md says when columns pay.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from heron.api import Bolt, Grouping, Spout, TopologyBuilder, TopologyContext

WORDS = pa.array(["storm", "heron", "spout", "bolt", "tuple", "grouping", "stream", "column"])
BATCHES = 50
ROWS = 20_000


class WordSpout(Spout):
    """Emits batches of random words. A dictionary array holds each distinct word once."""

    outputs = ("word",)
    columns = True

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        self.random = np.random.default_rng(context.get_task_index())
        self.left = BATCHES

    def next_tuple(self) -> None:
        if not self.left:
            self.end()
            return
        self.left -= 1
        codes = pa.array(self.random.integers(0, len(WORDS), ROWS, dtype=np.int32))
        self.emit_columns({"word": pa.DictionaryArray.from_arrays(codes, WORDS)})


class CountBolt(Bolt):
    """Counts the words of each batch at once. The fields grouping brings all rows of a word to the same task."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        self.counts: dict[str, int] = {}

    def process_columns(self, batch: pa.RecordBatch) -> None:
        for found in pc.value_counts(batch.column("word")).to_pylist():
            self.counts[found["values"]] = self.counts.get(found["values"], 0) + found["counts"]

    def finish(self) -> None:
        for word, count in sorted(self.counts.items()):
            print(f"{word:10} {count:9,}")


def count_words() -> TopologyBuilder:
    """Build the topology."""
    builder = TopologyBuilder("count-words")
    words = builder.add_spout("words", WordSpout, par=2)
    builder.add_bolt("count", CountBolt, par=2, inputs={words: Grouping.fields("word")})
    return builder


if __name__ == "__main__":
    count_words().build_and_submit()
