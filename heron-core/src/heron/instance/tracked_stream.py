"""An output stream whose tuples are tracked: the same log, flushed with roots and keys.

A spout's rows are roots of their own; a bolt's hang on what they are anchored to. Keys are derived from the batch's
key, the row's number and the destination, so that a flush sends none of them (design D5). What one destination gets
whole needs no arrays; all else is `heron.instance.array_tracking`.
"""

from __future__ import annotations

import secrets
from operator import itemgetter
from typing import Protocol

from heron.api.definition import StreamDefinition
from heron.instance.anchors import Anchors
from heron.instance.arrays import arrays
from heron.instance.in_batch import InBatch
from heron.instance.out_stream import OutStream, StreamOrigin, StreamRoutes
from heron.instance.root_book import RootBook
from heron.ipc.frame import OptionTag, option
from heron.ipc.tracking import COUNTER_BITS, MAX_DERIVED_ROWS, new_roots_derived

__all__ = ["AnchorHost", "AnchoredStream", "RootStream", "TrackedStream"]


class AnchorHost(Protocol):
    """What the streams of a bolt ask of its tracker."""

    @property
    def in_work(self) -> list[InBatch | None]:
        """The batch whose tuples are given to `process` now, in a list of one."""
        ...

    @property
    def corrections(self) -> list[bytes]:
        """Ack segments that must reach the ledger no later than the acks of what was anchored to."""
        ...


class TrackedStream(OutStream):
    """What both kinds have in common."""

    def parts(self, count: int) -> list[tuple[tuple[int, ...], list[int]]]:
        """``(tasks, row numbers)`` of each part of a flush, the numbers ascending."""
        everything = list(range(count))
        parts = [(self.routes.whole, everything)] if self.routes.whole else []
        for splitter in self.routes.splitters:
            parts += [((task,), chosen) for task, chosen in splitter.split(everything)]  # type: ignore[arg-type, misc]
        self.tasks_of_last = tuple(task for tasks, _ in parts for task in tasks)
        return parts

    def encoded(self, rows: list[object], numbers: list[int], bad: set[int]) -> list[tuple[list[int], bytes]]:
        """``(row numbers, payload)`` of a part; the numbers of rows that cannot travel go to `bad`."""
        chosen = rows if len(numbers) == len(rows) else _chosen(rows, numbers)
        encoded: list[tuple[list[int], bytes]] = []
        at = 0

        def reject(row: object, error: Exception) -> None:
            nonlocal at
            bad.add(numbers[at])
            at += 1
            self.origin.rejected(self.definition.name, row, error)

        for part, payload in self.origin.encoded(chosen, self.definition.fields, reject):
            self.adapt(len(part), len(payload))
            encoded.append((numbers[at : at + len(part)], payload))
            at += len(part)
        return encoded


class RootStream(TrackedStream):
    """A stream whose rows are roots: a spout's, or what a bolt emits in `finish`."""

    __slots__ = ("book", "ids")

    def __init__(
        self, number: int, definition: StreamDefinition, routes: StreamRoutes, origin: StreamOrigin, book: RootBook
    ) -> None:
        super().__init__(number, definition, routes, origin)
        self.book = book
        self.ids: list[object] = []

    def flush(self) -> list[bytes]:
        """Rows that have an id become roots; without any, the batch is sent as in a topology without acks."""
        rows = self.take_rows()
        ids = self.ids[: len(rows)]
        del self.ids[: len(rows)]
        untracked = ids.count(None)
        if untracked == len(ids):
            return self.segments_of(rows)
        if untracked:
            with_id = [row for row, tup_id in enumerate(ids) if tup_id is not None]
            base = self.book.open([ids[row] for row in with_id])
            return arrays().root_segments(self, rows, base, with_id)
        base = self.book.open(ids)
        whole = self._whole(rows, base) if self.routes.whole and not self.routes.splitters else None
        return whole if whole is not None else arrays().root_segments(self, rows, base, None)

    def _whole(self, rows: list[object], base: int) -> list[bytes] | None:
        """The usual case: all rows in one segment, keys derived there as here; None when it is not."""
        tasks = self.routes.whole
        payloads: list[bytes] = []
        for part, payload in self.origin.encoded(
            rows,
            self.definition.fields,
            lambda _row, _error: None,  # seen again by `encoded`
        ):
            if len(part) != len(rows) or len(rows) > MAX_DERIVED_ROWS:
                return None
            payloads.append(payload)
        if not payloads:
            return None
        self.tasks_of_last = tasks
        self.adapt(len(rows), len(payloads[0]))
        task_id, batch_key = self.origin.task_id, secrets.randbits(64)
        root_base = (task_id << COUNTER_BITS) | base
        options = option(OptionTag.BATCH_KEY, batch_key.to_bytes(8, "little")) + option(
            OptionTag.ROOT_BASE, root_base.to_bytes(8, "little")
        )
        roots = new_roots_derived(task_id, base, batch_key, len(rows), tasks)
        return [roots, self.tuples_segment(tasks, payloads[0], len(rows), options)]


class AnchoredStream(TrackedStream):
    """A bolt's stream: its rows hang on received tuples, or on nothing."""

    __slots__ = ("anchors", "tracker")

    def __init__(
        self,
        number: int,
        definition: StreamDefinition,
        routes: StreamRoutes,
        origin: StreamOrigin,
        tracker: AnchorHost,
    ) -> None:
        super().__init__(number, definition, routes, origin)
        self.tracker = tracker
        self.anchors = Anchors()

    def flush(self) -> list[bytes]:
        """Rows without any anchor are sent as in a topology without acks.

        The batches that rows hang on learn the keys of the copies here: their acks must wait for it.
        """
        rows = self.take_rows()
        self.anchors.resolve(self.tracker.in_work[0], len(rows))
        regular, irregular = self.anchors.take()
        if not regular and not irregular:
            return self.segments_of(rows)
        return arrays().anchored_segments(self, rows, regular, irregular)


def _chosen(rows: list[object], numbers: list[int]) -> list[object]:
    # one call for all is twice as fast as one for each (measured); of a single row `itemgetter` makes no tuple
    return list(itemgetter(*numbers)(rows)) if len(numbers) > 1 else [rows[number] for number in numbers]
