"""The tuples that a JVM has and has not settled, by the ids that they have there: single ones, and rows of batches."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from heron.api import PlainBatch, Tuple
from heron.clock import monotonic_s

__all__ = ["Anchor", "PendingTuples"]

_NOTE_S = 1.0

Anchor = tuple[PlainBatch | Tuple, Sequence[int]]
"""Places of a batch, or a tuple with places that only count: see `heron.api.BaseBolt.emit_plain`."""


class _Rows:
    """The rows of a batch: `first` is the id of the first one. `settled` has a byte for each, once some are settled."""

    __slots__ = ("batch", "end", "first", "left", "settled")

    def __init__(self, first: int, batch: PlainBatch) -> None:
        self.first = first
        self.end = first + batch.rows
        self.batch = batch
        self.left = batch.rows
        self.settled: bytearray | None = None

    def take(self, first: int, end: int) -> Sequence[int]:
        """The places of these ids that were not settled; they are settled now."""
        places: Sequence[int] = range(max(first, self.first) - self.first, min(end, self.end) - self.first)
        if self.settled is None and len(places) < self.left:
            self.settled = bytearray(self.batch.rows)
        if self.settled is not None:
            places = [place for place in places if not self.settled[place]]
            for place in places:
                self.settled[place] = 1
        elif not self.left:
            places = ()
        self.left -= len(places)
        return places


class PendingTuples:
    """Ids follow each other. A tuple that is not settled for `expires_s` is dropped: its root has expired."""

    def __init__(self, expires_s: float) -> None:
        self.by_id: dict[int, Tuple] = {}
        self._rows: list[_Rows] = []
        self._firsts: list[int] = []
        self._settled = 0  # of these, all rows are settled
        self._expires_s = expires_s
        self._known: deque[tuple[float, int]] = deque()  # the last id of each second
        self._first = 1  # all below it are dropped or settled

    def __len__(self) -> int:
        return len(self.by_id) + sum(each.left for each in self._rows)

    def add(self, first: int, batch: PlainBatch) -> None:
        """The JVM gets a batch, whose rows have the ids from `first` on. Its payload is not kept."""
        self._rows.append(_Rows(first, replace(batch, payload=b"")))
        self._firsts.append(first)

    def settle(
        self,
        ranges: Sequence[int],
        settle: Callable[[Tuple], None],
        settle_rows: Callable[[PlainBatch, Sequence[int]], None],
    ) -> None:
        """Ack or fail ids: a first one and their number, and so on. Those that are not pending have no effect."""
        for first, count in zip(ranges[::2], ranges[1::2], strict=True):
            for rows in self._among(first, first + count):
                if places := rows.take(first, first + count):
                    settle_rows(rows.batch, places)
                    self._settled += not rows.left
            if self.by_id:
                for each in range(first, first + count) if count <= len(self.by_id) else sorted(self.by_id):
                    if first <= each < first + count and (tup := self.by_id.pop(each, None)) is not None:
                        settle(tup)
        if 2 * self._settled >= len(self._rows):
            self._keep_unsettled()

    def settle_all(
        self, settle: Callable[[Tuple], None], settle_rows: Callable[[PlainBatch, Sequence[int]], None]
    ) -> None:
        """Ack or fail everything."""
        pending, self.by_id = self.by_id, {}
        for tup in pending.values():
            settle(tup)
        for rows in self._rows:
            if places := rows.take(rows.first, rows.end):
                settle_rows(rows.batch, places)
        self._keep_unsettled()

    def tuples(self, ids: Sequence[int]) -> list[Tuple]:
        """The tuples that are pending among these ids."""
        found = []
        for each in ids:
            if (tup := self.by_id.get(each)) is not None:
                found.append(tup)
            found += [rows.batch.anchor(each - rows.first) for rows in self._among(each, each + 1)]
        return found

    def anchors(self, ids: Sequence[int | None]) -> list[Anchor]:
        """The anchors of rows in their order; an id that is not pending stands for no anchor."""
        found: list[Anchor] = []
        at = 0
        while at < len(ids):
            each, end = ids[at], at + 1
            rows = None if each is None else next(self._among(each, each + 1), None)
            if rows is None:
                found.append((_NO_TUPLE if each is None else self.by_id.get(each, _NO_TUPLE), (0,)))
            else:
                while end < len(ids) and (other := ids[end]) is not None and rows.first <= other < rows.end:
                    end += 1
                found.append((rows.batch, [other - rows.first for other in ids[at:end] if other is not None]))
            at = end
        return found

    def drop_expired(self, last_id: int) -> None:
        """Note the last id that was given, and drop what has been pending for too long."""
        if self._expires_s == float("inf"):
            return
        now_s, known, by_id = monotonic_s(), self._known, self.by_id
        if not known or now_s - known[-1][0] >= _NOTE_S:
            known.append((now_s, last_id))
        while known and now_s - known[0][0] > self._expires_s:
            _, last = known.popleft()
            for each in range(self._first, last + 1) if by_id else ():
                by_id.pop(each, None)
            for rows in self._among(self._first, last + 1):
                rows.take(rows.first, last + 1)
            self._first = last + 1
            self._keep_unsettled()

    def _among(self, first: int, end: int) -> Iterator[_Rows]:
        """The batches that have some of these ids."""
        at = max(0, bisect_right(self._firsts, first) - 1)
        while at < len(self._rows) and self._rows[at].first < end:
            if self._rows[at].end > first:
                yield self._rows[at]
            at += 1

    def _keep_unsettled(self) -> None:
        self._rows = [each for each in self._rows if each.left]
        self._firsts = [each.first for each in self._rows]
        self._settled = 0


_NO_TUPLE = Tuple()
