"""Which ids are in flight, and that each is given out once."""

from __future__ import annotations

import itertools
import random
import tracemalloc
import weakref
from collections.abc import Iterator

import pytest

from heron.instance.pending_roots import PendingRoots


def book_of(*batches: list[object]) -> tuple[PendingRoots, list[int]]:
    """A book, and the first counter of each batch; the clock counts its readings."""
    clock = itertools.count(100)
    book = PendingRoots(lambda: next(clock))
    return book, [book.open(ids) for ids in batches]


def test_roots_are_dense_and_begin_somewhere_else_in_each_life() -> None:
    """A stale ack of an earlier life of the task must not meet a root of this one."""
    _, (first, second, third) = book_of(["a", "b"], ["c"], ["d"])
    assert (second - first, third - second) == (2, 1)
    _, (other,) = book_of(["a"])
    assert other != first
    assert 0 <= first < 1 << 47


def test_ids_come_in_the_order_of_the_counters_with_the_time_of_their_flush() -> None:
    """Across batches, as a range or as a list."""
    book, (base, _) = book_of(["a", "b"], ["c", "d"])
    assert book.settle([base + 3, base, base + 2]) == [(["d"], 101), (["a"], 100), (["c"], 101)]
    assert book.in_flight == 1
    assert book.settle(range(base, base + 9)) == [(["b"], 100)]
    assert book.in_flight == 0


def test_a_batch_settled_whole_is_one_entry() -> None:
    """The usual case."""
    book, (base, _) = book_of(["a", "b", "c"], ["d"])
    assert book.settle(range(base, base + 3)) == [(["a", "b", "c"], 100)]
    assert book.in_flight == 1


@pytest.mark.parametrize("doubled", [lambda base: range(base, base + 3), lambda base: [base, base + 2, base]])
def test_what_is_settled_or_unknown_is_left_out(doubled: object) -> None:
    """Stale and doubled news are harmless."""
    book, (base,) = book_of(["a", "b", "c"])
    counters = doubled(base)  # type: ignore[operator]
    first = [tup_id for ids, _ in book.settle(counters) for tup_id in ids]
    assert len(first) == len(set(counters))
    assert [ids for ids, _ in book.settle(counters) if ids] == []
    assert book.settle([base - 1, base + 3, 5]) == []
    assert book.settle(range(base + 3, base + 6)) == []
    assert book.in_flight == 3 - len(first)


def test_all_that_is_left_may_be_given_up_at_once() -> None:
    """When the stream manager is a new one; ids that cannot be hashed, or are None twice, are ids too."""
    unhashable: list[object] = [["a"], {}, ["a"]]
    book, (base,) = book_of(list(unhashable))
    book.settle([base + 1])
    assert [ids for ids, _ in book.settle_all()] == [[["a"], ["a"]]]
    assert book.in_flight == 0
    assert book.settle(range(base, base + 3)) == []
    assert book.settle_all() == []


@pytest.mark.parametrize("young_roots", [1, 500, 1 << 40])
def test_settling_in_any_order_gives_each_id_once(young_roots: int) -> None:
    """Against a plain dictionary; with pages of both shapes."""
    chance = random.Random(3)
    book = PendingRoots(lambda: 0.0, young_roots=young_roots)
    waiting: dict[int, int] = {}
    for number in range(300):
        size = chance.choice([1, 2, 80])
        base = book.open([number * 100 + offset for offset in range(size)])
        waiting |= {base + offset: number * 100 + offset for offset in range(size)}
        first = chance.choice(list(waiting))
        counters = (
            range(first, first + chance.randrange(1, 40))
            if chance.random() < 0.5
            else chance.sample(list(waiting), min(len(waiting), chance.randrange(1, 40)))
        )
        expected = [waiting.pop(counter) for counter in counters if counter in waiting]
        assert [tup_id for ids, _ in book.settle(counters) for tup_id in ids] == expected
        assert book.in_flight == len(waiting)


def test_news_of_roots_that_nobody_knows_cost_nothing() -> None:
    """A range is as long as its sender says, four thousand millions at most; the known ones within it count."""
    book, (first, second) = book_of(["a", "b"], ["c"])
    book.settle([first + 1])
    assert book.settle(range(first - 2**31, first + 2**31)) == [(["a"], 100), (["c"], 101)]
    assert book.settle(range(second + 1, second + 2**32 - 1)) == []
    assert book.settle(range(2**32 - 1)) == []
    assert book.in_flight == 0


def test_a_page_is_looked_at_a_few_times_however_many_there_are() -> None:
    """A trickle makes a page of each tuple, and 60,000 may be in flight: a look at all at each ack took seconds."""
    looks = 0

    class Counted(list[object]):
        def __iter__(self) -> Iterator[object]:
            nonlocal looks
            for each in list.__iter__(self):
                looks += 1
                yield each

    book = PendingRoots(lambda: 0.0)
    counters = [book.open([number]) for number in range(5000)]
    for counter in counters:
        if not isinstance(book._pages, Counted):  # they were gathered anew
            book._pages = Counted(book._pages)  # type: ignore[assignment]  # a list that counts
        book.settle([counter])
    assert book.in_flight == 0
    assert looks <= 4 * len(counters)


def test_ids_are_let_go_of_when_their_flush_is_settled() -> None:
    """An id may be large; its page waits for others to be forgotten with."""

    class Large:
        pass

    book = PendingRoots(lambda: 0.0)
    large = Large()
    gone = weakref.ref(large)
    first = book.open([large])
    for number in range(10):
        book.open([number])
    del large
    book.settle([first])
    assert gone() is None


def test_a_straggler_costs_what_it_is_and_not_a_page() -> None:
    """One root of each flush is never settled: 60,000 of them must not hold the ids of millions."""
    stragglers, rows = 3000, 1000
    tracemalloc.start()
    try:
        book = PendingRoots(lambda: 0.0)
        bases = []
        for number in range(stragglers):
            bases.append(book.open([number] * rows))
            book.settle(range(bases[-1] + 1, bases[-1] + rows))
        held_bytes = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert book.in_flight == stragglers
    assert (held_bytes - 70_000 * 8) / stragglers < 700  # the young ones are lists
    assert [ids for ids, _ in book.settle(bases)] == [[number] for number in range(stragglers)]
    assert book.settle_all() == []


def test_a_thin_page_gives_up_what_is_left_of_it() -> None:
    """Also when all is given up at once, and for a range that covers what is settled."""
    book = PendingRoots(lambda: 0.0, young_roots=1)
    base = book.open(list(range(100)))
    book.open(["next"])
    book.settle(range(base + 2, base + 99))
    assert book.settle(range(base + 1, base + 50)) == [([1], 0.0)]
    assert book.settle_all() == [([0, 99], 0.0), (["next"], 0.0)]
