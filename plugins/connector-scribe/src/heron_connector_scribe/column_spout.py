"""A spout that is a Scribe collector, and emits each call as columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from heron_connector_scribe.batch import Batch
from heron_connector_scribe.entries import Entry
from heron_connector_scribe.entry_columns import columns_of, log_columns
from heron_connector_scribe.spout import ScribeSpout

__all__ = ["ScribeColumnSpout"]


class ScribeColumnSpout(ScribeSpout):
    """As `ScribeSpout`, in columns: text, numbers and bytes. At least once a call is one root, not each message.

    A message that fails makes its whole call come again. It needs ``heron-connector-scribe[columns]``.
    """

    columns = True
    parse: ClassVar[staticmethod[..., Sequence[Entry]]] = staticmethod(log_columns)

    def _emit_all(self, entries: Sequence[Entry]) -> None:
        self.emit_columns(columns_of(entries))

    def _emit_tracked(self, batch: Batch) -> None:
        self._emit_again(batch, self._opened(batch, 1))

    def _emit_again(self, batch: Batch, tup_id: object) -> None:
        self.emit_columns(columns_of(batch.entries), tup_id)
