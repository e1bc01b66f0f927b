"""A spout that is a Scribe collector, and emits each call as columns."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from heron_connector_scribe.batch import Batch
from heron_connector_scribe.entries import Entries
from heron_connector_scribe.spout import ScribeSpout

__all__ = ["ScribeColumnSpout"]


class ScribeColumnSpout(ScribeSpout):
    """As `ScribeSpout`, in columns: text, numbers and bytes. At least once a call is one root, not each message.

    A message that fails makes its whole call come again. It needs ``heron-connector-scribe[columns]``.
    """

    columns = True

    def _emit_all(self, entries: Entries) -> None:
        self.emit_columns(columns_of(entries))

    def _emit_tracked(self, batch: Batch) -> None:
        self._emit_again(batch, self._opened(batch, 1))

    def _emit_again(self, batch: Batch, tup_id: object) -> None:
        self.emit_columns(columns_of(batch.entries), tup_id)


def columns_of(entries: Entries) -> pa.RecordBatch:
    """The entries as columns; categories are a dictionary array."""
    first, count = entries.categories[0], len(entries)
    if entries.categories.count(first) == count:
        codes = pa.array(np.zeros(count, dtype=np.int32))
        categories = pa.DictionaryArray.from_arrays(codes, pa.array([first]))
    else:
        categories = pa.array(entries.categories).dictionary_encode()
    partitions = pa.array(np.array(entries.partitions, dtype=np.int64))
    return pa.RecordBatch.from_arrays(
        [categories, partitions, pa.array(entries.messages, pa.binary())], list(ScribeSpout.outputs)
    )
