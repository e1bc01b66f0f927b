"""Tuples that a JVM has not settled."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from heron.api import PlainBatch, Tuple
from heron_runtime_jvm import pending_tuples
from heron_runtime_jvm.pending_tuples import PendingTuples


def test_a_tuple_that_is_never_settled_is_dropped_when_its_root_has_expired(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bolt that forgets tuples must not fill the memory of its task."""
    now = [100.0]
    monkeypatch.setattr(pending_tuples, "monotonic_s", lambda: now[0])
    pending = PendingTuples(expires_s=10)
    for number in range(1, 31):
        pending.by_id[number] = Tuple()
        pending.drop_expired(number)
        now[0] += 1.0
    assert list(pending.by_id) == list(range(20, 31))


def test_without_timeouts_no_tuple_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Effectively once a checkpoint would be complete without its output."""
    monkeypatch.setattr(pending_tuples, "monotonic_s", iter(range(0, 10**6, 1000)).__next__)
    pending = PendingTuples(float("inf"))
    for number in range(1, 31):
        pending.by_id[number] = Tuple()
        pending.drop_expired(number)
    assert list(pending.by_id) == list(range(1, 31))


def test_tuples_are_settled_once_and_unknown_ids_have_no_effect() -> None:
    """A bolt may ack a tuple twice, or one of an earlier JVM."""
    pending, settled = PendingTuples(10), list[Tuple]()
    tuples = {number: Tuple() for number in (1, 2, 3)}
    pending.by_id.update(tuples)
    pending.settle([2, 1, 7, 1, 2, 1], settled.append, no_rows)
    assert settled == [tuples[2]]
    pending.settle_all(settled.append, no_rows)
    assert settled == [tuples[2], tuples[1], tuples[3]]
    assert not len(pending)


def no_rows(batch: PlainBatch, places: Sequence[int]) -> None:
    """No batch is pending."""
    pytest.fail(f"{batch} has no rows {places}")


def no_tuple(tup: Tuple) -> None:
    """No single tuple is pending."""
    pytest.fail(f"{tup} is none")


class Rows:
    """Settled rows, by batch."""

    def __init__(self) -> None:
        self.settled: list[tuple[object, list[int]]] = []

    def __call__(self, batch: PlainBatch, places: Sequence[int]) -> None:
        """Settle rows."""
        assert not batch.payload
        self.settled.append((batch.id, list(places)))


def two_batches(expires_s: float = 10) -> tuple[PendingTuples, str, str]:
    """Three rows with the ids from 1 on, the tuple 4, and two rows from 5 on; returns what the engine knows them by."""
    pending = PendingTuples(expires_s)
    pending.add(1, batch(3, "first"))
    pending.by_id[4] = Tuple()
    pending.add(5, batch(2, "second"))
    return pending, "first", "second"


def batch(rows: int, name: str) -> PlainBatch:
    """A batch that the engine knows by this name."""
    return PlainBatch("words", "default", 1, rows, b"payload", name)


def test_a_range_of_ids_settles_rows_of_several_batches_once() -> None:
    """The JVM knows ids only; a batch that is settled as a whole has one range of places."""
    pending, first, second = two_batches()
    rows, single = Rows(), list[Tuple]()
    pending.settle([2, 4, 1, 1, 6, 3, 100, 1], single.append, rows)
    assert rows.settled == [(first, [1, 2]), (second, [0]), (first, [0]), (second, [1])]
    assert len(single) == 1
    assert not len(pending)
    pending.settle([1, 6], no_tuple, no_rows)
    pending.add(7, batch(3, first))
    pending.settle([7, 3], no_tuple, rows)
    assert rows.settled[-1] == (first, [0, 1, 2])


def test_a_death_fails_only_the_rows_that_are_not_settled() -> None:
    """An acked row must not be emitted again."""
    pending, first, second = two_batches()
    rows, single = Rows(), list[Tuple]()
    pending.settle([2, 1], no_tuple, rows)
    pending.settle_all(single.append, rows)
    assert rows.settled == [(first, [1]), (first, [0, 2]), (second, [0, 1])]
    assert len(single) == 1
    assert not len(pending)


def test_anchors_are_places_of_batches_in_the_order_of_the_rows() -> None:
    """An id that is not pending, and a row without a link, have no anchor."""
    pending, first, second = two_batches()
    tup = pending.by_id[4]
    found = pending.anchors([3, 3, 1, 4, None, 6, 99])
    assert [(anchor.id, places) for anchor, places in found[:2]] == [(first, [2, 2, 0]), (tup.id, (0,))]
    assert found[1][0] is tup
    assert (found[3][0].id, found[3][1]) == (second, [1])
    assert [anchor[0]._index for anchor in (found[2], found[4]) if isinstance(anchor[0], Tuple)] == [-1, -1]
    assert [(each.id, each._index) for each in pending.tuples([5, 4, 99])] == [(second, 0), (tup.id, -1)]


def test_rows_expire_with_their_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """As single tuples do."""
    now = [100.0]
    monkeypatch.setattr(pending_tuples, "monotonic_s", lambda: now[0])
    pending, _, second = two_batches()
    pending.drop_expired(4)
    now[0] += 5.0
    pending.drop_expired(6)
    now[0] += 6.0
    pending.drop_expired(6)
    rows = Rows()
    pending.settle_all(no_tuple, rows)
    assert rows.settled == [(second, [0, 1])]
