"""What the JVM of a bolt emits, acks and fails, as calls of the component's methods."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import cast

from heron.api import PlainBatch, PlainBolt
from heron_runtime_jvm.frames import links_of
from heron_runtime_jvm.pending_tuples import PendingTuples

__all__ = ["JvmBoltOutput"]


class JvmBoltOutput:
    """Ids of the JVM are looked up in `pending`. An error of an emit is shown, and fails what it is anchored to."""

    def __init__(self, bolt: PlainBolt, pending: PendingTuples, *, anchors_count: bool) -> None:
        self._bolt = bolt
        self._pending = pending
        self._anchors_count = anchors_count

    def emit_batch(self, stream: str, count: int, given: object, payload: bytes) -> None:
        """Emit a batch of columns; `given` are its links."""
        links = links_of(given, count)
        anchors = self._pending.anchors(links) if links is not None and self._anchors_count else ()
        try:
            rows = self._bolt.emit_plain(payload, count, stream, anchors)
        except Exception as error:
            self._fail_links([] if links is None else links)
            self._bolt.report_error(error)
        else:
            for row, link in zip(rows, repeat(None) if links is None else links, strict=False):
                self.emit(stream, 0, row, link)

    def emit_rows(self, stream: str, task: int, rows: list[list[object]], given: object) -> None:
        """Emit rows one by one; `given` are their links."""
        links = links_of(given, len(rows))
        for row, link in zip(rows, repeat(None, len(rows)) if links is None else links, strict=True):
            self.emit(stream, task, row, link)

    def emit(
        self, stream: str, task: int, row: Sequence[object], link: object, *, need_task_ids: bool = False
    ) -> list[int] | None:
        """Emit a row; `link` is an id, a list of ids, or None."""
        ids: list[int] = link if isinstance(link, list) else [] if link is None else [cast("int", link)]
        anchors = self._pending.tuples(ids) if ids and self._anchors_count else None
        try:
            return self._bolt.emit(row, stream, anchors, task or None, need_task_ids)
        except Exception as error:
            self._fail_links(ids)
            self._bolt.report_error(error)
            return None

    def ack(self, ranges: Sequence[int]) -> None:
        """Ack ids."""
        self._pending.settle(ranges, self._bolt.ack, self._ack_rows)

    def fail(self, ranges: Sequence[int]) -> None:
        """Fail ids."""
        self._pending.settle(ranges, self._bolt.fail, self._fail_rows)

    def fail_all(self) -> None:
        """Fail everything that is pending."""
        self._pending.settle_all(self._bolt.fail, self._fail_rows)

    def _fail_links(self, links: Sequence[int | None]) -> None:
        for each in links:
            if each is not None:
                self.fail([each, 1])

    def _ack_rows(self, batch: PlainBatch, places: Sequence[int]) -> None:
        self._bolt.settle_rows(batch, places, acked=True)

    def _fail_rows(self, batch: PlainBatch, places: Sequence[int]) -> None:
        self._bolt.settle_rows(batch, places, acked=False)
