"""Tuple objects are reused unless they are kept, and kept objects never change."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import pytest

from heron.api.tuple import Tuple
from heron.instance.input.tuple_pool import TuplePool


@pytest.fixture
def pool() -> TuplePool:
    return TuplePool(Tuple.source("word", "default", 3))


def run_batch(pool: TuplePool, values: Sequence[tuple[object, ...]], process: Callable[[Tuple], None]) -> None:
    """Processes a batch as the bolt runner does."""
    pairs = zip(pool.take(len(values)), values, strict=False)
    while _slice(islice(pairs, 3), process):
        pass
    del pairs
    pool.recycle(len(values))


def _slice(pairs: Iterator[tuple[Tuple, tuple[object, ...]]], process: Callable[[Tuple], None]) -> bool:
    any_of_them = False
    tup: Tuple
    while True:
        try:
            for tup, tup.values in pairs:
                any_of_them = True
                process(tup)
        except ValueError:
            continue
        return any_of_them


def batches(count: int, size: int) -> list[list[tuple[object, ...]]]:
    return [[(batch, position) for position in range(size)] for batch in range(count)]


def test_objects_that_are_not_kept_are_reused(pool: TuplePool) -> None:
    """A bolt that keeps no tuple causes no new objects."""
    seen: list[set[int]] = []
    for values in batches(5, 10):
        ids: set[int] = set()
        run_batch(pool, values, lambda tup, ids=ids: ids.add(id(tup)))  # type: ignore[misc]  # mypy: lambda defaults
        seen.append(ids)
    assert all(ids == seen[0] for ids in seen)
    assert len(seen[0]) == 10


def test_a_single_kept_tuple_is_replaced_alone(pool: TuplePool) -> None:
    """One kept tuple of a hundred causes one new object."""
    kept: list[Tuple] = []
    first = [id(tup) for tup in pool.take(10)]
    run_batch(pool, batches(1, 10)[0], lambda tup: kept.append(tup) if tup.values[1] == 4 else None)
    assert kept[0] not in pool.take(10)
    second = [id(tup) for tup in pool.take(10)]
    assert second[:4] + second[5:] == first[:4] + first[5:]


KEEPERS: dict[str, Callable[[list[object], Tuple], None]] = {
    "list": lambda kept, tup: kept.append(tup),
    "dict key": lambda kept, tup: kept.append({tup: 1}),
    "closure": lambda kept, tup: kept.append(lambda: tup),
    "bound method": lambda kept, tup: kept.append(tup.__iter__),
    "attribute of another": lambda kept, tup: kept.append(Tuple("x", (tup,))),
    "generator": lambda kept, tup: kept.append(each for each in [tup]),
}


@pytest.mark.parametrize("keeper", list(KEEPERS))
def test_kept_tuples_are_never_reused(pool: TuplePool, keeper: str) -> None:
    """This holds for every way to keep them, and for any number of batches."""
    kept: list[object] = []
    seen: list[tuple[int, tuple[object, ...]]] = []
    alive: list[Tuple] = []

    def process(tup: Tuple) -> None:
        KEEPERS[keeper](kept, tup)
        seen.append((id(tup), tup.values))
        alive.append(tup)

    expected: list[tuple[object, ...]] = []
    for values in batches(20, 7):
        run_batch(pool, values, process)
        expected += values
    assert len({identity for identity, _ in seen}) == 140
    assert [tup.values for tup in alive] == expected


def test_tuples_that_are_kept_for_some_batches_stay_unchanged(pool: TuplePool) -> None:
    """A window bolt keeps some tuples and releases them batches later."""
    draw = random.Random(5)
    held: dict[tuple[object, ...], Tuple] = {}

    def process(tup: Tuple) -> None:
        if draw.random() < 0.3:
            held[tup.values] = tup
        if held and draw.random() < 0.25:
            del held[draw.choice(list(held))]
        if draw.random() < 0.1:
            raise ValueError

    for number in range(300):
        run_batch(pool, [(number, position) for position in range(draw.randint(1, 40))], process)
        assert all(tup.values == values for values, tup in held.items())
        assert len({id(tup) for tup in held.values()}) == len(held)
    assert len(held) > 20


def test_an_exception_that_is_kept_keeps_its_tuple(pool: TuplePool) -> None:
    """An error collector holds frames, and a frame holds the tuple that failed."""
    errors: list[BaseException] = []

    def process(tup: Tuple) -> None:
        try:
            _fail(tup)
        except KeyError as error:
            errors.append(error)

    for values in batches(5, 6):
        run_batch(pool, values, process)
    found = []
    for error in errors:
        trace = error.__traceback__
        assert trace is not None
        assert trace.tb_next is not None
        found.append(trace.tb_next.tb_frame.f_locals["failing"].values)
    assert found == [values for batch in batches(5, 6) for values in batch]


def _fail(failing: Tuple) -> None:
    raise KeyError(failing.values)


def test_values_that_are_kept_without_their_tuple_stay_intact(pool: TuplePool) -> None:
    """The object is reused, but its values never are."""
    kept: list[tuple[object, ...]] = []
    for number in range(10):
        columns = [[number] * 8, list(range(8))]
        run_batch(pool, list(zip(*columns, strict=True)), lambda tup: kept.append(tup.values))
    assert kept == [(number, position) for number in range(10) for position in range(8)]


def test_zip_does_not_overwrite_kept_values(pool: TuplePool) -> None:
    """`zip` reuses its result tuple if no one holds it; here a pooled object holds it."""
    kept: list[tuple[Tuple, int]] = []
    for number in range(20):
        columns: list[list[object]] = [[number] * 8, list(range(8))]
        pairs = zip(pool.take(8), zip(*columns, strict=True), strict=False)
        _slice(pairs, lambda tup: kept.append((tup, id(tup.values))) if tup.values[1] == 5 else None)
        del pairs
        pool.recycle(8)
    assert [tup.values for tup, _ in kept] == [(number, 5) for number in range(20)]


def test_a_tuple_that_another_thread_holds_is_not_reused(pool: TuplePool) -> None:
    """Bolts may pass tuples to their own threads."""
    mine: list[Tuple] = []
    taken, checked = threading.Event(), threading.Event()
    results: list[object] = []

    def other() -> None:
        tup = mine.pop()
        taken.set()
        checked.wait(10)
        results.append(tup.values)

    thread = threading.Thread(target=other)
    run_batch(pool, [("first",)], mine.append)
    # The batch's object is held by the list now; pass it on to the thread, and run more batches meanwhile.
    thread.start()
    assert taken.wait(10)
    for number in range(5):
        run_batch(pool, [(number,)], lambda _tup: None)
    checked.set()
    thread.join(10)
    assert results == [("first",)]


def test_without_exact_counts_every_batch_has_new_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    """Free-threaded builds count references in two places."""
    monkeypatch.setattr("heron.instance.input.tuple_pool._COUNTS_ARE_EXACT", lambda: False)
    pool = TuplePool(Tuple)
    alive: list[Tuple] = []
    for values in batches(3, 4):
        run_batch(pool, values, alive.append)
    assert len({id(tup) for tup in alive}) == 12


def test_a_larger_batch_makes_the_pool_larger(pool: TuplePool) -> None:
    """A smaller batch after it leaves the other objects unchanged."""
    for size in (3, 10, 5):
        seen: list[object] = []
        run_batch(pool, [(number,) for number in range(size)], lambda tup, seen=seen: seen.append(tup.values[0]))  # type: ignore[misc]
        assert seen == list(range(size))
    assert len(pool.tuples) == 10
