"""The roots that a task has in flight, and the calls of the author's `ack` and `fail` when they are settled.

For each root, the task keeps the author's id and the time of the flush. Counters are dense, so one flush is one entry.
They begin at a random number, so that a stale ack of an earlier incarnation matches no root of this one.
"""

from __future__ import annotations

import secrets
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import repeat
from operator import is_
from typing import TYPE_CHECKING, TypeVar, cast

from heron.api.spout import Spout
from heron.clock import monotonic_s
from heron.instance.acks.owed_replays import OwedReplays
from heron.instance.metrics.spans import SpanBuffer
from heron.instance.metrics.task_metrics import TaskMetrics
from heron.instance.queues.data_queue import RootsSettled
from heron.instance.user.user_component import SpoutHookCalls
from heron.ipc.frames.tracking import COUNTER_BITS, NO_CAUSE, Cause, RootOutcome

if TYPE_CHECKING:  # loaded where topology.replay.attempts is set
    from heron.instance.replay.kept_roots import KeptRoot, KeptRows
    from heron.instance.replay.replayer import Replayer

__all__ = ["ImmediateAcks", "PendingRoots", "RootCallbacks"]

T = TypeVar("T")

_SETTLED = object()
_YOUNG = 65_536  # roots: more than a spout has in flight by default; pages of older roots may be thinned out
_THIN = 16  # when one in 16 ids of a page is left, the remaining ids are kept one by one
_WORTH_IT = 64  # ids: smaller pages are not thinned out
_MOST_GAPS = 100  # to leave out so many takes less time than to look at each id of a page


class _Page:
    """The roots of one flush."""

    __slots__ = ("_few", "_gaps", "_ids", "base", "end", "kept", "left", "since_s")

    def __init__(self, base: int, ids: list[object], since_s: float, kept: KeptRows | None) -> None:
        self.base = base
        self.end = base + len(ids)
        self.left = len(ids)
        self.since_s = since_s
        self.kept = kept
        self._ids = ids  # released when all are settled; the page itself may wait for its neighbours
        self._few: dict[int, object] | None = None  # the remaining ids of a thinned page, by counter
        self._gaps: list[int] = []  # the first places that were settled one by one, as those of failed roots are

    def take(self, counters: range | list[int]) -> list[object]:
        """Settles these roots of the page; returns the ids of those that were not settled before."""
        if not self.left:
            return []
        if self._few is not None or not isinstance(counters, range):
            fresh, taken = self._take_each(counters)
            if self.kept is not None and self.left:
                self.kept.release([counter - self.base for counter in fresh])
            return taken
        start, end = counters[0] - self.base, counters[-1] - self.base + 1
        taken = self._unsettled_between(start, end)
        self.left -= len(taken)
        if not self.left:  # the usual case
            self._ids = []
            return taken
        self._ids[start:end] = [_SETTLED] * (end - start)
        if self.kept is not None:
            self.kept.release(range(start, end))
        return taken

    def _unsettled_between(self, start: int, end: int) -> list[object]:
        """The ids at these places that are not settled."""
        ids = self._ids[start:end]
        if len(self._gaps) != len(self._ids) - self.left:  # there are more
            return [tup_id for tup_id in ids if tup_id is not _SETTLED]
        for place in sorted(self._gaps, reverse=True):
            if start <= place < end:
                del ids[place - start]
        return ids

    def _take_each(self, counters: range | list[int]) -> tuple[range | list[int], list[object]]:
        """Settles these roots one by one; returns those that were not settled before, and their ids."""
        if not isinstance(counters, range) and len(set(counters)) < len(counters):
            counters = list(dict.fromkeys(counters))
        ids, few, base = self._ids, self._few, self.base
        if few is None:
            taken = [ids[counter - base] for counter in counters]
        else:
            taken = [few.pop(counter, _SETTLED) for counter in counters]
        if any(map(is_, taken, repeat(_SETTLED))):
            counters = [each for each, tup_id in zip(counters, taken, strict=True) if tup_id is not _SETTLED]
            taken = [tup_id for tup_id in taken if tup_id is not _SETTLED]
        if few is None:
            for counter in counters:
                ids[counter - base] = _SETTLED
            self._gaps += [counter - base for counter in counters[: _MOST_GAPS - len(self._gaps)]]
        self.left -= len(taken)
        if not self.left:
            self._ids = []
        return counters, taken

    def take_kept(self, counters: range | list[int], causes: dict[int, Cause]) -> tuple[list[KeptRoot], list[Cause]]:
        """Settles these roots of the page, which stay kept; returns those that were not settled before, and why."""
        kept, base = self.kept, self.base
        fresh, taken = self._take_each(counters) if self.left else ((), ())
        if kept is None:
            return [], []
        roots = kept.take([counter - base for counter in fresh], taken)
        return roots, list(map(causes.pop, fresh, repeat(NO_CAUSE)))

    def thin_out(self) -> None:
        """Keeps only the remaining ids if they are few: a root that is never acked must not hold a page's memory."""
        if _THIN * self.left <= len(self._ids) >= _WORTH_IT:
            self._few = {
                counter: tup_id for counter, tup_id in enumerate(self._ids, self.base) if tup_id is not _SETTLED
            }
            self._ids = []
            if self.kept is not None:
                self.kept.thin_out([counter - self.base for counter in self._few])

    def has(self, counter: int) -> bool:
        """Whether the root with this counter is not settled."""
        if self._few is not None:
            return counter in self._few
        return self.left > 0 and self._ids[counter - self.base] is not _SETTLED

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
        self.freed_bytes = 0  # of kept rows whose roots were settled by `settle`
        self.owed_replays = OwedReplays()

    def open(self, ids: list[object], kept: KeptRows | None = None) -> int:
        """Adds one root for each of these ids; returns the counter of the first. `kept` has their rows."""
        if self.owed_replays:
            self.owed_replays.opened(ids)
        base = self._next
        self._next += len(ids)
        self.in_flight += len(ids)
        self._pages.append(_Page(base, ids, self._clock(), kept))
        self._bases.append(base)
        while self._is_old(self._pages[self._old_pages]):
            self._pages[self._old_pages].thin_out()
            self._old_pages += 1
        return base

    def settle(self, counters: range | list[int]) -> list[tuple[list[object], float]]:
        """Settles these roots: ``(ids, in flight since)`` per flush, in this order. Unknown counters are ignored."""
        found: list[tuple[list[object], float]] = []
        for page, part in self._parts(counters):
            size_bytes, before = page.kept.size_bytes if page.kept is not None else 0, page.left
            if ids := page.take(part):
                self._settled(page, before)
                self.freed_bytes += size_bytes * len(ids)
                found.append((ids, page.since_s))
        self._forget_settled()
        return found

    def settle_kept(
        self, counters: range | list[int], causes: dict[int, Cause]
    ) -> list[tuple[list[KeptRoot], list[Cause], float]]:
        """`settle` for kept roots, which stay kept. Takes out of `causes` why they failed, by counter."""
        found: list[tuple[list[KeptRoot], list[Cause], float]] = []
        for page, part in self._parts(counters):
            before = page.left
            roots, why = page.take_kept(part, causes)
            if roots:
                found.append((roots, why, page.since_s))
            self._settled(page, before)
        self._forget_settled()
        return found

    def _settled(self, page: _Page, before: int) -> None:
        """Some roots of the page may be settled now; `before` were left."""
        if page.left == before:
            return
        self.in_flight -= before - page.left
        if not page.left:
            self._settled_pages += 1
            page.kept = None
        if self._is_old(page):
            page.thin_out()

    def _parts(self, counters: range | list[int]) -> Iterator[tuple[_Page, range | list[int]]]:
        """The pages of these roots, in this order, each with its counters."""
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
            yield page, counters[start:at]

    def has(self, counter: int) -> bool:
        """Whether the root with this counter is in flight."""
        page = self._page_of(counter)
        return page is not None and page.has(counter)

    def settle_all(self) -> list[tuple[list[object], float]]:
        """Settles all roots in flight: the ledger that tracked them is gone."""
        return self._settle_all([(list(page.unsettled()), page.since_s) for page in self._pages])

    def settle_all_kept(self) -> list[tuple[list[KeptRoot], float]]:
        """`settle_all` for kept roots."""
        return self._settle_all(
            [(page.take_kept(range(page.base, page.end), {})[0], page.since_s) for page in self._pages]
        )

    def _settle_all(self, found: list[tuple[list[T], float]]) -> list[tuple[list[T], float]]:
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
        self.on_ack_all: Callable[[Sequence[object]], None] | None = None
        self.on_fail: Callable[[object], None] | None = None
        self.hook_calls: SpoutHookCalls | None = None
        self.spans: SpanBuffer | None = None
        self.replayer: Replayer | None = None
        self._causes: dict[int, Cause] = {}  # by the counters of roots in flight, whose fails follow

    def settle(self, settled: RootsSettled) -> None:
        """Handles the outcomes that the stream manager has sent."""
        for failed, causes in settled.causes if self.replayer is not None else ():
            self._causes.update(zip(failed, causes, strict=True))
        for outcome, counters in settled.outcomes:
            now_s = monotonic_s()
            if self.replayer is not None and outcome is not RootOutcome.COMPLETE:
                for roots, causes, since_s in self._pending.settle_kept(counters, self._causes):
                    self._fail_kept(self.replayer, roots, outcome, now_s - since_s, causes)
            elif outcome is RootOutcome.COMPLETE:
                self._complete(counters, now_s)
            else:
                for ids, since_s in self._pending.settle(counters):
                    self._fail(ids, outcome, now_s - since_s)
            self._note_traced(outcome)
        if self._causes:  # also of roots that have ended otherwise
            self._causes = {each: cause for each, cause in self._causes.items() if self._pending.has(each)}

    def shed(self, ids: list[object]) -> None:
        """Tuples were shed: their author forgets them as after an ack. No metric counts them as acked."""
        self._call_ack(ids)

    def lose_all(self) -> None:
        """Fails all roots in flight, because a new stream manager has no record of them."""
        now_s, replayer = monotonic_s(), self.replayer
        if replayer is not None:
            for roots, since_s in self._pending.settle_all_kept():
                self._fail_kept(replayer, roots, RootOutcome.LOST, now_s - since_s)
        for ids, since_s in self._pending.settle_all():
            self._fail(ids, RootOutcome.LOST, now_s - since_s)
        self._note_traced(RootOutcome.LOST)

    def _note_traced(self, outcome: RootOutcome) -> None:
        """Reports the traced roots that are no longer in flight."""
        if self.spans is not None and self.spans.in_flight:
            for counter in [each for each in self.spans.in_flight if not self._pending.has(each)]:
                self.spans.settled(counter, outcome.name.lower())

    def _complete(self, counters: range | list[int], now_s: float) -> None:
        """The trees of these roots are complete."""
        found = self._pending.settle(counters)
        if self.replayer is not None:
            self.replayer.kept_bytes -= self._pending.freed_bytes
            self._pending.freed_bytes = 0
        for ids, since_s in found:
            self._metrics.complete_latency.add(now_s - since_s, len(ids))
            self._ack(ids, now_s - since_s)

    def _ack(self, ids: list[object], latency_s: float) -> None:
        self._metrics.acked += len(ids)
        if self.replayer is not None and self.replayer.stored:
            self.replayer.note_acked(ids)
        if self.on_ack is None and self.on_ack_all is None and self.hook_calls is None:
            return
        if self.replayer is not None:
            ids = self.replayer.heard(ids)
        self._call_ack(ids)
        if self.hook_calls is not None:
            self._call("spout_ack", partial(self.hook_calls.acked, latency_s=latency_s), ids)

    def _call_ack(self, ids: list[object]) -> None:
        if self.on_ack_all is None:
            self._call("ack", self.on_ack, ids)
        elif ids:
            self._call("ack_all", cast("Callable[[object], None]", self.on_ack_all), [ids])

    def _fail_kept(
        self,
        replayer: Replayer,
        roots: list[KeptRoot],
        outcome: RootOutcome,
        latency_s: float,
        causes: Sequence[Cause] = (),
    ) -> None:
        self._count_failed(len(roots), outcome)
        self._call_fail(replayer.failed(roots, outcome, latency_s, causes), latency_s)

    def _fail(self, ids: list[object], outcome: RootOutcome, latency_s: float) -> None:
        self._count_failed(len(ids), outcome)
        self._call_fail(ids, latency_s)

    def _count_failed(self, roots: int, outcome: RootOutcome) -> None:
        name = outcome.name.lower()
        self._metrics.failed += roots
        self._metrics.failed_by[name] = self._metrics.failed_by.get(name, 0) + roots

    def _call_fail(self, ids: list[object], latency_s: float) -> None:
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
