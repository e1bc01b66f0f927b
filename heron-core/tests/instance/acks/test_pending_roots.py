"""The ids of roots in flight, each of which is returned once."""

from __future__ import annotations

import itertools
import random
import tracemalloc
import weakref
from collections.abc import Iterator

import pytest

from heron.instance.acks.pending_roots import PendingRoots, RootCallbacks
from heron.instance.metrics.task_metrics import TaskMetrics
from heron.instance.queues.data_queue import RootsSettled
from heron.instance.replay.kept_roots import KeptRows
from heron.instance.replay.replay_policy import ReplayPolicy
from heron.instance.replay.replayer import GivenUp, Replayer
from heron.ipc.frames.tracking import NO_CAUSE, RootOutcome

WHY = (b"{}", b'"why"')


def pending_of(*batches: list[object]) -> tuple[PendingRoots, list[int]]:
    """Pending roots, and the first counter of each batch; the clock counts its readings."""
    clock = itertools.count(100)
    pending = PendingRoots(lambda: next(clock))
    return pending, [pending.open(ids) for ids in batches]


def test_counters_are_dense_and_begin_at_a_random_number() -> None:
    """A stale ack of an earlier incarnation must not match a root of this one."""
    _, (first, second, third) = pending_of(["a", "b"], ["c"], ["d"])
    assert (second - first, third - second) == (2, 1)
    _, (other,) = pending_of(["a"])
    assert other != first
    assert 0 <= first < 1 << 47


def test_ids_are_returned_in_the_order_of_the_counters_with_their_time() -> None:
    """The counters may span batches, and are a range or a list."""
    pending, (base, _) = pending_of(["a", "b"], ["c", "d"])
    assert pending.settle([base + 3, base, base + 2]) == [(["d"], 101), (["a"], 100), (["c"], 101)]
    assert pending.in_flight == 1
    assert pending.settle(range(base, base + 9)) == [(["b"], 100)]
    assert pending.in_flight == 0


def test_a_batch_settled_whole_is_one_entry() -> None:
    """The usual case."""
    pending, (base, _) = pending_of(["a", "b", "c"], ["d"])
    assert pending.settle(range(base, base + 3)) == [(["a", "b", "c"], 100)]
    assert pending.in_flight == 1


@pytest.mark.parametrize("doubled", [lambda base: range(base, base + 3), lambda base: [base, base + 2, base]])
def test_settled_and_unknown_counters_are_ignored(doubled: object) -> None:
    """Stale and repeated outcomes have no effect."""
    pending, (base,) = pending_of(["a", "b", "c"])
    counters = doubled(base)  # type: ignore[operator]
    first = [tup_id for ids, _ in pending.settle(counters) for tup_id in ids]
    assert len(first) == len(set(counters))
    assert [ids for ids, _ in pending.settle(counters) if ids] == []
    assert pending.settle([base - 1, base + 3, 5]) == []
    assert pending.settle(range(base + 3, base + 6)) == []
    assert pending.in_flight == 3 - len(first)


def test_all_roots_may_be_settled_at_once() -> None:
    """This happens for a new stream manager. Ids need not be hashable or distinct."""
    unhashable: list[object] = [["a"], {}, ["a"]]
    pending, (base,) = pending_of(list(unhashable))
    pending.settle([base + 1])
    assert [ids for ids, _ in pending.settle_all()] == [[["a"], ["a"]]]
    assert pending.in_flight == 0
    assert pending.settle(range(base, base + 3)) == []
    assert pending.settle_all() == []


@pytest.mark.parametrize("young_roots", [1, 500, 1 << 40])
def test_settling_in_any_order_gives_each_id_once(young_roots: int) -> None:
    """The result equals that of a plain dictionary, for full and for thinned pages."""
    chance = random.Random(3)
    pending = PendingRoots(lambda: 0.0, young_roots=young_roots)
    waiting: dict[int, int] = {}
    for number in range(300):
        size = chance.choice([1, 2, 80])
        base = pending.open([number * 100 + offset for offset in range(size)])
        waiting |= {base + offset: number * 100 + offset for offset in range(size)}
        first = chance.choice(list(waiting))
        counters = (
            range(first, first + chance.randrange(1, 40))
            if chance.random() < 0.5
            else chance.sample(list(waiting), min(len(waiting), chance.randrange(1, 40)))
        )
        expected = [waiting.pop(counter) for counter in counters if counter in waiting]
        assert [tup_id for ids, _ in pending.settle(counters) for tup_id in ids] == expected
        assert pending.in_flight == len(waiting)


@pytest.mark.parametrize("failed", [1, 99, 100, 101, 300])
def test_a_range_leaves_out_what_was_settled_one_by_one(failed: int) -> None:
    """Failed roots lie between complete ones; up to 100 of a page are left out without a look at each id."""
    pending = PendingRoots(lambda: 0.0)
    base = pending.open([*range(400)])
    settled = random.Random(failed).sample(range(400), failed)
    pending.settle([base + each for each in settled])
    left = [each for each in range(400) if each not in settled]
    middle = range(base + 50, base + 200)
    assert [ids for ids, _ in pending.settle(middle)] == [[each for each in left if 50 <= each < 200]]
    assert [ids for ids, _ in pending.settle(range(base, base + 400))] == [
        [each for each in left if not 50 <= each < 200]
    ]
    assert pending.in_flight == 0


def test_outcomes_of_unknown_roots_cost_nothing() -> None:
    """A received range may have four thousand million counters; only the known ones count."""
    pending, (first, second) = pending_of(["a", "b"], ["c"])
    pending.settle([first + 1])
    assert pending.settle(range(first - 2**31, first + 2**31)) == [(["a"], 100), (["c"], 101)]
    assert pending.settle(range(second + 1, second + 2**32 - 1)) == []
    assert pending.settle(range(2**32 - 1)) == []
    assert pending.in_flight == 0


def test_a_page_is_visited_only_a_few_times() -> None:
    """A trickle makes a page per tuple, and 60,000 may be in flight: to visit all at each ack took seconds."""
    looks = 0

    class Counted(list[object]):
        def __iter__(self) -> Iterator[object]:
            nonlocal looks
            for each in list.__iter__(self):
                looks += 1
                yield each

    pending = PendingRoots(lambda: 0.0)
    counters = [pending.open([number]) for number in range(5000)]
    for counter in counters:
        if not isinstance(pending._pages, Counted):  # the list was replaced
            pending._pages = Counted(pending._pages)  # type: ignore[assignment]  # a list that counts
        pending.settle([counter])
    assert pending.in_flight == 0
    assert looks <= 4 * len(counters)


def test_ids_are_released_when_their_flush_is_settled() -> None:
    """An id may be large, and its page may wait for other pages."""

    class Large:
        pass

    pending = PendingRoots(lambda: 0.0)
    large = Large()
    gone = weakref.ref(large)
    first = pending.open([large])
    for number in range(10):
        pending.open([number])
    del large
    pending.settle([first])
    assert gone() is None


def test_a_root_that_is_never_settled_costs_no_page() -> None:
    """If one root of each flush is never settled, 60,000 such roots must not hold the ids of millions."""
    stragglers, rows = 1000, 300
    tracemalloc.start()
    try:
        pending = PendingRoots(lambda: 0.0)
        bases = []
        for number in range(stragglers):
            bases.append(pending.open([number] * rows))
            pending.settle(range(bases[-1] + 1, bases[-1] + rows))
        held_bytes = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert pending.in_flight == stragglers
    assert (held_bytes - 70_000 * 8) / stragglers < 700  # young pages are lists
    assert [ids for ids, _ in pending.settle(bases)] == [[number] for number in range(stragglers)]
    assert pending.settle_all() == []


def test_a_thinned_page_returns_its_remaining_ids() -> None:
    """This holds if all roots are settled at once, and for a range that covers settled roots."""
    pending = PendingRoots(lambda: 0.0, young_roots=1)
    base = pending.open(list(range(100)))
    pending.open(["next"])
    pending.settle(range(base + 2, base + 99))
    assert pending.settle(range(base + 1, base + 50)) == [([1], 0.0)]
    assert pending.settle_all() == [([0, 99], 0.0), (["next"], 0.0)]


class Row:
    """An emitted value that a weak reference can follow."""


def test_kept_roots_have_their_rows_until_they_end() -> None:
    """A row that is acked is freed, whatever becomes of its neighbours."""
    pending, _ = pending_of()
    rows = [Row() for _ in range(6)]
    seen = [weakref.ref(row) for row in rows]
    kept = KeptRows("default", rows, [(place,) for place in range(6)])
    kept.size_bytes = 10
    base = pending.open(list("abcdef"), kept)
    del rows
    assert pending.settle([base]) == [(["a"], 100)]
    assert pending.settle(range(base + 1, base + 3)) == [(["b", "c"], 100)]
    assert ([row() is None for row in seen], pending.freed_bytes) == ([True] * 3 + [False] * 3, 30)
    ((roots, causes, since_s),) = pending.settle_kept([base + 2, base + 4, base + 3, base + 4], {base + 4: WHY})
    expected = [("e", seen[4](), (4,)), ("d", seen[3](), (3,))]
    assert [(each.tup_id, each.row, each.direct) for each in roots] == expected
    assert causes == [WHY, NO_CAUSE]
    assert (since_s, roots[0].stream, roots[0].size_bytes, pending.freed_bytes, pending.in_flight) == (
        *(100, "default", 10, 30),
        1,
    )
    ((last, _),) = pending.settle_all_kept()
    assert [each.tup_id for each in last] == ["f"]
    assert pending.in_flight == 0


def test_the_rows_of_old_pages_are_freed_with_their_ids() -> None:
    """A root that is never acked must not hold the rows of its page; it can still be emitted again."""
    pending = PendingRoots(lambda: 0.0, young_roots=10)
    rows = [Row() for _ in range(100)]
    seen = [weakref.ref(row) for row in rows]
    base = pending.open([*range(100)], KeptRows("default", rows))
    del rows
    pending.open([*range(10)], KeptRows("default", [0] * 10))
    pending.settle([base + place for place in range(98)])
    assert [place for place, row in enumerate(seen) if row() is not None] == [98, 99]
    pending.settle([base + 98])
    assert seen[98]() is None
    ((roots, _, _),) = pending.settle_kept(range(base, base + 100), {})
    assert [(each.tup_id, each.row) for each in roots] == [(99, seen[99]())]


def test_a_cause_does_not_outlive_its_root() -> None:
    """A task may fail a tuple whose tree is complete; a cause may also come long before the fail."""
    given_up = list[GivenUp]()
    pending = PendingRoots(lambda: 0.0)
    calls = RootCallbacks(pending, TaskMetrics(), lambda *_: pytest.fail("no call fails"))
    calls.replayer = Replayer(ReplayPolicy(0, 0.1, 1000), lambda: 0.0, given_up.extend)
    kept = KeptRows("default", ["a", "b", "c"])
    kept.size_bytes = calls.replayer.kept(3, 30)
    base = pending.open(["a", "b", "c"], kept)
    complete, failed = RootOutcome.COMPLETE, RootOutcome.FAILED
    calls.settle(
        RootsSettled(((complete, [base]),), (([base, base + 1], [WHY, WHY]), ([base + 7], [(b"unknown", b"")])))
    )
    assert calls._causes == {base + 1: WHY}
    calls.settle(RootsSettled(((failed, [base + 1, base + 2]),)))
    assert [(each.root.row, each.replay.tup_id, each.cause) for each in given_up] == [
        ("b", "b", WHY),
        ("c", "c", NO_CAUSE),
    ]
    assert (calls._causes, calls.replayer.kept_bytes) == ({}, 0)
