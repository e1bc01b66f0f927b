"""The roots that a task has in flight, and the calls of the author's `ack` and `fail` when they are settled.

For each root, the task keeps the author's id and the time of the flush. Counters are dense, so one flush is one entry.
They begin at a random number, so that a stale ack of an earlier incarnation matches no root of this one.
"""

from __future__ import annotations

import secrets
from bisect import bisect_right
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

from heron.api.spout import Spout
from heron.clock import monotonic_s
from heron.instance.acks.replays import Replays
from heron.instance.metrics.spans import SpanBuffer
from heron.instance.metrics.task_metrics import TaskMetrics
from heron.instance.queues.data_queue import RootsSettled
from heron.instance.user.user_component import SpoutHookCalls
from heron.ipc.frames.tracking import COUNTER_BITS, RootOutcome

if TYPE_CHECKING:  # loaded where topology.replay.attempts is set
    from heron.instance.replay.replayer import Replayer

__all__ = ["ImmediateAcks", "PendingRoots", "RootCallbacks"]

_SETTLED = object()
_YOUNG = 65_536  # roots: more than a spout has in flight by default; pages of older roots may be thinned out
_THIN = 16  # when one in 16 ids of a page is left, the remaining ids are kept one by one
_WORTH_IT = 64  # ids: smaller pages are not thinned out


class _Page:
    """The roots of one flush."""

    __slots__ = ("_few", "_ids", "base", "end", "left", "since_s")

    def __init__(self, base: int, ids: list[object], since_s: float) -> None:
        self.base = base
        self.end = base + len(ids)
        self.left = len(ids)
        self.since_s = since_s
        self._ids = ids  # released when all are settled; the page itself may wait for its neighbours
        self._few: dict[int, object] | None = None  # the remaining ids of a thinned page, by counter

    def take(self, counters: range | list[int]) -> list[object]:
        """Settles these roots of the page; returns the ids of those that were not settled before."""
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
            if len(taken) < len(self._ids):
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
        """Keeps only the remaining ids if they are few: a root that is never acked must not hold a page's memory."""
        if _THIN * self.left <= len(self._ids) >= _WORTH_IT:
            self._few = {
                counter: tup_id for counter, tup_id in enumerate(self._ids, self.base) if tup_id is not _SETTLED
            }
            self._ids = []

    def has(self, counter: int) -> bool:
        """Whether the root with this counter is not settled."""
        if self._few is not None:
            return counter in self._few
        return self.left > 0 and self._ids[counter - self.base] is not _SETTLED

    def id_of(self, counter: int) -> object:
        """The id of the root with this counter; None if it is settled."""
        if not self.has(counter):
            return None
        return self._ids[counter - self.base] if self._few is None else self._few[counter]

    def unsettled(self) -> list[object]:
        """The ids of the roots that are not settled."""
        ids: Iterable[object] = self._ids if self._few is None else self._few.values()
        return [tup_id for tup_id in ids if tup_id is not _SETTLED]


class PendingRoots:
    """Roots in flight by counter. Pure."""

    def __init__(self, clock: Callable[[], float], *, young_roots: int = _YOUNG) -> None:
        self._clock = clock
        self._young_roots = young_roots
        self._next = secrets.randbits(COUNTER_BITS - 2)
        self._pages: list[_Page] = []
        self._bases: list[int] = []
        self._settled_pages = 0
        self._old_pages = 0  # the number of first pages that were checked for thinning when they became old
        self.in_flight = 0
        self.replays = Replays()

    def open(self, ids: list[object]) -> int:
        """Adds one root for each of these ids; returns the counter of the first."""
        if self.replays:
            self.replays.opened(ids)
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
        """Settles these roots: ``(ids, in flight since)`` per flush, in this order. Unknown counters are ignored."""
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

    def has(self, counter: int) -> bool:
        """Whether the root with this counter is in flight."""
        page = self._page_of(counter)
        return page is not None and page.has(counter)

    def id_of(self, counter: int) -> object:
        """The id of the root with this counter; None if it is not in flight."""
        page = self._page_of(counter)
        return page.id_of(counter) if page is not None else None

    def settle_all(self) -> list[tuple[list[object], float]]:
        """Settles all roots in flight: the ledger that tracked them is gone."""
        found = [(list(page.unsettled()), page.since_s) for page in self._pages]
        self._pages.clear()
        self._bases.clear()
        self._settled_pages = self._old_pages = 0
        self.in_flight = 0
        return [pair for pair in found if pair[0]]

    def _is_old(self, page: _Page) -> bool:
        return page.end + self._young_roots <= self._next

    def _page_of(self, counter: int) -> _Page | None:
        position = bisect_right(self._bases, counter) - 1
        page = self._pages[position] if position >= 0 else None
        return page if page is not None and counter < page.end else None

    def _end_of_unknown(self, counters: range | list[int], at: int) -> int:
        """The position behind the unknown counter at `at`; in a range, which may be long, the next known one."""
        if not isinstance(counters, range):
            return at + 1
        following = bisect_right(self._bases, counters[at])
        until = self._bases[following] if following < len(self._bases) else counters.stop
        return min(len(counters), at + until - counters[at])

    def _forget_settled(self) -> None:
        """Removes settled pages once they are half of all pages, so that each page costs only a few steps in total."""
        if 2 * self._settled_pages >= len(self._pages) and self._settled_pages:
            self._pages = [page for page in self._pages if page.left]
            self._bases = [page.base for page in self._pages]
            self._settled_pages = 0
            # The last of these pages may be only partly old: it is checked again.
            self._old_pages = max(0, bisect_right(self._bases, self._next - self._young_roots) - 1)


class RootCallbacks:
    """Calls the author's `ack` and `fail` for settled roots, in the order of completion. Belongs to the task thread.

    `on_ack` and `on_fail` are None if the author does not override the method. An exception of a call goes to
    `failed_call`, with the name of the method and the id.
    """

    def __init__(
        self, pending: PendingRoots, metrics: TaskMetrics, failed_call: Callable[[str, BaseException, object], None]
    ) -> None:
        self._pending = pending
        self._metrics = metrics
        self._failed_call = failed_call
        self.on_ack: Callable[[object], None] | None = None
        self.on_fail: Callable[[object], None] | None = None
        self.hook_calls: SpoutHookCalls | None = None
        self.spans: SpanBuffer | None = None
        self.replayer: Replayer | None = None  # if it is set, `ids` below are kept roots (`KeptRoot`)

    def settle(self, settled: RootsSettled) -> None:
        """Handles the outcomes that the stream manager has sent."""
        if self.replayer is not None and settled.causes:
            self._note_causes(self.replayer, settled)
        for outcome, counters in settled.outcomes:
            now_s = monotonic_s()
            found = self._pending.settle(counters)
            self._note_traced(outcome)
            for ids, since_s in found:
                if outcome is RootOutcome.COMPLETE:
                    self._metrics.complete_latency.add(now_s - since_s, len(ids))
                    self._completed(ids, now_s - since_s)
                else:
                    self._fail(ids, outcome, now_s - since_s)

    def lose_all(self) -> None:
        """Fails all roots in flight, because a new stream manager has no record of them."""
        now_s = monotonic_s()
        found = self._pending.settle_all()
        self._note_traced(RootOutcome.LOST)
        for ids, since_s in found:
            self._fail(ids, RootOutcome.LOST, now_s - since_s)

    def _note_traced(self, outcome: RootOutcome) -> None:
        """Reports the traced roots that are no longer in flight."""
        if self.spans is not None and self.spans.in_flight:
            for counter in [each for each in self.spans.in_flight if not self._pending.has(each)]:
                self.spans.settled(counter, outcome.name.lower())

    def _note_causes(self, replayer: Replayer, settled: RootsSettled) -> None:
        for counters, cause in settled.causes:
            for counter in counters:
                if (root := self._pending.id_of(counter)) is not None:
                    replayer.note(root, cause)

    def _completed(self, ids: list[object], latency_s: float) -> None:
        self._ack(ids, latency_s)

    def _ack(self, ids: list[object], latency_s: float) -> None:
        self._metrics.acked += len(ids)
        if self.replayer is not None:
            ids = self.replayer.acked(ids)
        self._call("ack", self.on_ack, ids)
        if self.hook_calls is not None:
            self._call("spout_ack", partial(self.hook_calls.acked, latency_s=latency_s), ids)

    def _fail(self, ids: list[object], outcome: RootOutcome, latency_s: float) -> None:
        self._metrics.failed += len(ids)
        self._metrics.failed_by[outcome.name.lower()] = self._metrics.failed_by.get(outcome.name.lower(), 0) + len(ids)
        if self.replayer is not None:
            ids = self.replayer.failed(ids, outcome, latency_s)
        self._call("fail", self.on_fail, ids)
        if self.hook_calls is not None:
            self._call("spout_fail", partial(self.hook_calls.failed, latency_s=latency_s), ids)

    def _call(self, doing: str, method: Callable[[object], None] | None, ids: list[object]) -> None:
        if method is None:
            return
        for tup_id in ids:
            try:
                method(tup_id)
            except BaseException as error:
                self._failed_call(doing, error, tup_id)


class ImmediateAcks:
    """The acks of a spout at most once: its `ack` is called for each emitted tuple, as a heronpy spout may expect.

    `ids` is the list to which emits append; None if the author does not override `ack`, so that emits cost nothing.
    """

    def __init__(
        self, component_class: type, metrics: TaskMetrics, failed_call: Callable[[str, BaseException, object], None]
    ) -> None:
        overridden = component_class.ack is not Spout.ack  # type: ignore[attr-defined]  # a spout's class
        self.ids: list[object] | None = [] if overridden else None
        self._metrics = metrics
        self._failed_call = failed_call

    def call(self, spout: Spout, hook_calls: SpoutHookCalls | None) -> None:
        """Calls `ack` for the ids since the last call."""
        if not self.ids:
            return
        ids, self.ids[:] = list(self.ids), []
        for tup_id in ids:
            try:
                spout.ack(tup_id)
                if hook_calls is not None:
                    hook_calls.acked(tup_id, 0.0)
            except BaseException as error:
                self._failed_call("ack", error, tup_id)
        self._metrics.acked += len(ids)
