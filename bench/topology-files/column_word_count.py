"""SimplifiedWordCount in columns: the same words, counted by key, in record batches. One spout, one bolt.

With ``--text 1`` the words are an array of text, which the bolt encodes; without it, a dictionary array.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np
import pyarrow as pa
from bench_record import TICK_S, CountLog, config_of, options, repeated
from simplified_word_count import DISTINCT, word_block

from heron.api import Bolt, Grouping, Spout, TopologyBuilder, TopologyContext, Tuple, api_constants

ROWS = 10 * DISTINCT
EXPECTED = dict.fromkeys(word_block(), ROWS // DISTINCT)


def block_of(*, text: bool) -> pa.RecordBatch:
    """Return every word ten times."""
    codes = pa.array(np.tile(np.arange(DISTINCT, dtype=np.int32), ROWS // DISTINCT))
    words = pa.DictionaryArray.from_arrays(codes, pa.array(word_block()))
    return pa.record_batch({"word": words.dictionary_decode() if text else words})


class ColumnWordSpout(Spout):
    """Emits the block repeatedly."""

    outputs = ("word",)
    columns = True

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        block = block_of(text=bool(config["text"]))
        self.blocks = repeated(_Blocks(block), config, context)

    def next_tuple(self) -> None:
        for block in self.blocks:
            self.emit_columns(block)
            return
        self.end()


class AckedColumnWordSpout(ColumnWordSpout):
    """Emits each block with an id."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        super().initialize(config, context)
        self.next_id = count().__next__

    def next_tuple(self) -> None:
        for block in self.blocks:
            self.emit_columns(block, self.next_id())
            return
        self.end()


class _Blocks(Sequence[pa.RecordBatch]):
    """One block that counts as its rows."""

    def __init__(self, block: pa.RecordBatch) -> None:
        self._block = block

    def __len__(self) -> int:
        return ROWS

    def __getitem__(self, place: int) -> pa.RecordBatch:  # type: ignore[override]
        if place:
            raise IndexError
        return self._block


class ColumnCountBolt(Bolt):
    """Counts the codes of a dictionary as long as batches have the same one."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        self.record = CountLog(config, context)
        self.rows = 0
        self.words: pa.Array = pa.array([], pa.string())
        self.by_code = np.zeros(0, dtype=np.int64)
        self.counts: Counter[str] = Counter()

    def process_columns(self, batch: pa.RecordBatch) -> None:
        column = batch.column(0)
        coded = column if isinstance(column, pa.DictionaryArray) else column.dictionary_encode()
        if not coded.dictionary.equals(self.words):
            self.merge()
            self.words, self.by_code = coded.dictionary, np.zeros(len(coded.dictionary), dtype=np.int64)
        self.by_code += np.bincount(coded.indices.to_numpy(), minlength=len(self.by_code))
        self.rows += batch.num_rows

    def merge(self) -> None:
        """Add what was counted by code."""
        self.counts.update(dict(zip(self.words.to_pylist(), self.by_code.tolist(), strict=True)))

    def process_tick(self, tup: Tuple) -> None:
        self.record.note(self.rows)

    def finish(self) -> None:
        self.merge()
        self.record.conclude(self.counts)


class AckedColumnCountBolt(ColumnCountBolt):
    """Acks each batch that it counts."""

    def process_columns(self, batch: pa.RecordBatch) -> None:
        super().process_columns(batch)
        self.ack(batch)


def topology(arguments: Sequence[str]) -> TopologyBuilder:
    chosen = options(arguments, spouts=1, bolts=1, containers=1, text=0)
    builder = TopologyBuilder("ColumnWordCount")
    builder.set_config(config_of(chosen, text=chosen.text, **{api_constants.TOPOLOGY_STMGRS: chosen.containers}))
    spout, bolt = (AckedColumnWordSpout, AckedColumnCountBolt) if chosen.atleast else (ColumnWordSpout, ColumnCountBolt)
    words = builder.add_spout("words", spout, par=chosen.spouts)
    every = {api_constants.TOPOLOGY_TICK_TUPLE_FREQ_SECS: TICK_S}
    builder.add_bolt("last", bolt, par=chosen.bolts, inputs={words: Grouping.fields("word")}, config=every)
    return builder


if __name__ == "__main__":
    topology(sys.argv[1:]).build_and_submit()
