"""The roots that a task has in flight: which id the author gave each, and since when. Pure.

Counters are dense, so a flush is one entry. They begin at a random place: a stale ack of an earlier life of the task
then meets no root of this one.
"""

from __future__ import annotations

import secrets
from bisect import bisect_right
from collections.abc import Callable, Iterable

from heron.ipc.tracking import COUNTER_BITS

__all__ = ["RootBook"]


_SETTLED = object()
_YOUNG = 65_536  # roots: more than a spout has in flight unless told otherwise; what is older may be thinned out
_THIN = 16  # of so many ids of a page one is left: then those that are left are kept one by one
_WORTH_IT = 64  # ids


class _Page:
    """The roots of one flush."""

    __slots__ = ("_few", "_ids", "base", "end", "left", "since_s")

    def __init__(self, base: int, ids: list[object], since_s: float) -> None:
        self.base = base
        self.end = base + len(ids)
        self.left = len(ids)
        self.since_s = since_s
        self._ids = ids  # let go of when all are settled: the page itself may wait for its neighbours
        self._few: dict[int, object] | None = None  # what is left of them, by counter

    def take(self, counters: range | list[int]) -> list[object]:
        """The ids of these roots of the page that are not settled yet; they are now."""
        if not self.left:
            return []
        if self._few is not None:
            taken = [self._few.pop(counter, _SETTLED) for counter in counters]
        elif isinstance(counters, range):
            start, end = counters[0] - self.base, counters[-1] - self.base + 1
            taken = self._ids[start:end]
            if self.left == len(self._ids) == len(taken):
                self.left, self._ids = 0, []
                return taken
            self._ids[start:end] = [_SETTLED] * (end - start)
        else:
            taken = []
            ids, base = self._ids, self.base
            for counter in counters:
                place = counter - base
                taken.append(ids[place])
                ids[place] = _SETTLED
        fresh = [tup_id for tup_id in taken if tup_id is not _SETTLED]
        self.left -= len(fresh)
        if not self.left:
            self._ids = []
        return fresh

    def thin_out(self) -> None:
        """Keeps only what is left, where that is little: else a root that nobody acks would pin all ids' room."""
        if _THIN * self.left <= len(self._ids) >= _WORTH_IT:
            self._few = {
                counter: tup_id for counter, tup_id in enumerate(self._ids, self.base) if tup_id is not _SETTLED
            }
            self._ids = []

    def unsettled(self) -> list[object]:
        """The ids of the roots that are not settled."""
        ids: Iterable[object] = self._ids if self._few is None else self._few.values()
        return [tup_id for tup_id in ids if tup_id is not _SETTLED]


class RootBook:
    """Roots in flight by counter."""

    def __init__(self, clock: Callable[[], float], *, young_roots: int = _YOUNG) -> None:
        self._clock = clock
        self._young_roots = young_roots
        self._next = secrets.randbits(COUNTER_BITS - 2)
        self._pages: list[_Page] = []
        self._bases: list[int] = []
        self._settled_pages = 0
        self._old_pages = 0  # the first so many have been looked at when they became old
        self.in_flight = 0

    def open(self, ids: list[object]) -> int:
        """Roots for these ids, one each; returns the counter of the first."""
        base = self._next
        self._next += len(ids)
        self.in_flight += len(ids)
        self._pages.append(_Page(base, ids, self._clock()))
        self._bases.append(base)
        while self._is_old(self._pages[self._old_pages]):
            self._pages[self._old_pages].thin_out()
            self._old_pages += 1
        return base

    def settle(self, counters: range | list[int]) -> list[tuple[list[object], float]]:
        """``(ids, in flight since)`` of these roots, in this order, a pair a flush; unknown ones are left out."""
        found: list[tuple[list[object], float]] = []
        at = 0
        while at < len(counters):
            page = self._page_of(counters[at])
            if page is None:
                at = self._end_of_unknown(counters, at)
                continue
            start = at
            if isinstance(counters, range):
                at = min(len(counters), at + page.end - counters[at])
            elif not at and page.base <= min(counters) and max(counters) < page.end:
                at = len(counters)  # the usual case
            else:
                while at < len(counters) and page.base <= counters[at] < page.end:
                    at += 1
            ids = page.take(counters[start:at])
            if ids:
                self.in_flight -= len(ids)
                self._settled_pages += not page.left
                if self._is_old(page):
                    page.thin_out()
                found.append((ids, page.since_s))
        self._forget_settled()
        return found

    def settle_all(self) -> list[object]:
        """The ids of all roots in flight: what knew more of them is gone."""
        ids = [tup_id for page in self._pages for tup_id in page.unsettled()]
        self._pages.clear()
        self._bases.clear()
        self._settled_pages = self._old_pages = 0
        self.in_flight = 0
        return ids

    def _is_old(self, page: _Page) -> bool:
        return page.end + self._young_roots <= self._next

    def _page_of(self, counter: int) -> _Page | None:
        position = bisect_right(self._bases, counter) - 1
        page = self._pages[position] if position >= 0 else None
        return page if page is not None and counter < page.end else None

    def _end_of_unknown(self, counters: range | list[int], at: int) -> int:
        """Behind the unknown counter at `at`; of a range, all up to the next page: it may be of any length."""
        if not isinstance(counters, range):
            return at + 1
        following = bisect_right(self._bases, counters[at])
        until = self._bases[following] if following < len(self._bases) else counters.stop
        return min(len(counters), at + until - counters[at])

    def _forget_settled(self) -> None:
        """Only once half of the pages are settled, so that a page costs no more than a few steps in all."""
        if 2 * self._settled_pages >= len(self._pages) and self._settled_pages:
            self._pages = [page for page in self._pages if page.left]
            self._bases = [page.base for page in self._pages]
            self._settled_pages = 0
            # The last of these may not be old to its end: it is looked at again.
            self._old_pages = max(0, bisect_right(self._bases, self._next - self._young_roots) - 1)
