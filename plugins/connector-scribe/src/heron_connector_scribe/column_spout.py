"""A spout that is a Scribe collector, and emits calls as columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import pyarrow as pa

from heron_connector_scribe.batch import Batch
from heron_connector_scribe.entries import Entry
from heron_connector_scribe.entry_columns import columns_of, log_columns
from heron_connector_scribe.spout import ScribeSpout

__all__ = ["ScribeColumnSpout"]

_ROWS = 16_384  # acks and back pressure wait for a batch


class ScribeColumnSpout(ScribeSpout):
    """As `ScribeSpout`, in columns: text, numbers and bytes. At least once the calls that wait together are one root.

    A message that fails makes all of them come again, then each as a root of its own. It needs
    ``heron-connector-scribe[columns]``.
    """

    columns = True
    parse: ClassVar[staticmethod[..., Sequence[Entry]]] = staticmethod(log_columns)

    def _emit_all(self, entries: Sequence[Entry]) -> None:
        self.emit_columns(columns_of(entries))

    def _emit_tracked(self, batch: Batch) -> None:
        if self._engine_replays:  # a dead letter has one call
            self._emit_batches([batch])
        else:
            self._emit_batches([batch, *self._intake.take_within(_ROWS - len(batch.entries))])

    def _emit_again(self, batches: Sequence[Batch], tup_id: int) -> None:
        """Each call alone, so that one that always fails keeps no other from its answer."""
        self._close(tup_id)
        for each in batches:
            if each.will_come_again:
                self._intake.answer(each)
            else:
                self._emit_batches([each])

    def _emit_batches(self, batches: Sequence[Batch]) -> None:
        columns = [columns_of(each.entries) for each in batches]
        self.emit_columns(pa.concat_batches(columns) if len(columns) > 1 else columns[0], self._opened(batches, 1))
