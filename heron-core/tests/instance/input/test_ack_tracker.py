"""The acks and fails that leave a bolt, and the time at which they leave."""

from __future__ import annotations

import copy
import struct
from collections.abc import Sequence

import numpy as np
import pytest

from heron.api.tuple import Tuple, TupleHelper
from heron.instance.acks.batch_arrays import BatchAcks
from heron.instance.acks.failed_rows import FailedRows
from heron.instance.acks.tracked_batch import UNTRACKED, AckedRows, TrackedBatch
from heron.instance.input.bolt_acks import AckTracker
from heron.instance.replay.failure_cause import decode_cause
from heron.instance.user.failure_places import FailurePlace, FailurePlaces
from heron.ipc.frames.frame import SegmentKind, parse_segment
from heron.ipc.frames.tracking import COUNTER_BITS, DERIVED
from heron.ipc.frames.tracking_arrays import edge_keys, parse_ack, parse_fail

TASK, SPOUT, KEY = 5, 2, 77
MAKE = Tuple.source("c", "s", 1)


class Out:
    """Parses sent segments: ``("ack", {root: xor})``, ``("fail", roots)`` or ``("range", (base, rows, acked))``."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, object]] = []

    def put_acks(self, segments: Sequence[bytes]) -> None:
        for data in segments:
            head = parse_segment(data, 0)
            assert head.destinations == (SPOUT,)
            if head.kind == SegmentKind.FAIL:
                self.sent.append(("fail", parse_fail(data, head)))
                continue
            ack = parse_ack(data, head)
            if head.encoding == DERIVED:
                self.sent.append(("range", (ack.base, len(ack.xors), ack.acked)))
            else:
                assert ack.roots is not None
                self.sent.append(("ack", dict(zip(ack.roots.tolist(), ack.xors.tolist(), strict=True))))


class Work:
    """A tracker, the batch in work, and its pool."""

    def __init__(self, rows: int, base: int = 100) -> None:
        self.out = Out()
        self.tracker = AckTracker(self.out)
        self.batch = ranged(rows, base)
        self.pool = [MAKE(None, (), place) for place in range(rows + 2)]  # a pool may be larger than the batch
        self.tracker.in_work = self.batch

    def settle(self, acked: Sequence[Tuple] = (), failed: Sequence[Tuple] = ()) -> None:
        lists = [*acked], [*failed]
        self.tracker.settle(*lists, self.pool)
        assert lists == ([], [])

    def sent(self) -> list[tuple[str, object]]:
        self.tracker.flush()
        sent, self.out.sent = self.out.sent, []
        return sent


def ranged(rows: int, base: int = 100) -> TrackedBatch:
    batch = TrackedBatch(TASK, rows, KEY)
    batch.root_base = (SPOUT << COUNTER_BITS) | base
    return batch


def key_of(row: int) -> int:
    return int(edge_keys(KEY, np.array([row], dtype=np.uint64), TASK)[0])


class Equal:
    """Is equal to everything, or raises."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error

    def __eq__(self, other: object) -> bool:
        if self.error is not None:
            raise self.error
        return True

    __hash__ = None  # type: ignore[assignment]  # like arrays


@pytest.mark.parametrize("wrong", [None, [1], np.array([1, 2]), Equal(ValueError("no")), 3])
def test_what_is_not_a_tuple_settles_nothing_and_is_named(wrong: object) -> None:
    """The generated `ack` checks nothing, since that would cost time for every tuple."""
    work = Work(3)
    work.settle(acked=[work.pool[0], wrong, work.pool[1]], failed=[wrong, work.pool[2]])  # type: ignore[list-item]
    assert [str(each).partition(" ")[0] for each in work.tracker.wrong] == ["fail", "ack"]
    assert all("give what was received" in str(each) for each in work.tracker.wrong)
    assert dict(work.sent()).keys() == {"fail", "range"}


def test_a_copy_settles_nothing_and_is_named() -> None:
    """Its tuple stays open until its root expires, which nobody would understand."""
    work = Work(3)
    work.settle(acked=[copy.copy(work.pool[0]), work.pool[1]])
    assert work.tracker.ignored == 1
    assert "it is a copy" in str(work.tracker.wrong[0])
    work.tracker.wrong.clear()
    work.settle(acked=[TupleHelper.make_tick_tuple()])
    assert not work.tracker.wrong


@pytest.mark.parametrize("doing", ["ack", "fail"])
def test_a_copy_of_a_kept_tuple_settles_nothing_and_is_named(doing: str) -> None:
    """It has the batch, and the place -1, which would be the last row."""
    work = Work(3)
    kept = Tuple.source("c", "s", 1)(work.batch, (), 1)
    wrong, last = copy.copy(kept), work.pool[2]
    work.settle(*([wrong], []) if doing == "ack" else ([], [wrong]))
    assert (work.sent(), work.tracker.ignored) == ([], 1)
    assert "it is a copy" in str(work.tracker.wrong[0])
    work.settle(acked=[wrong, last])
    assert work.sent() == [("ack", {102: key_of(2)})]


def test_errors_of_what_was_acked_are_forgotten() -> None:
    """A component may ack a batch and then raise; its batches must not stay."""
    rows = FailedRows("c", TASK, FailurePlaces())
    tracker = AckTracker(Out(), rows)
    for _ in range(3):
        rows.blame_all(ranged(8_000), "process_columns", ValueError("x"), FailurePlace())
        tracker.flush()
    failed = ranged(2)
    rows.blame(failed, 1, "process", ValueError("text"), FailurePlace())
    assert [decode_cause(each).error for each in rows.take([(failed, [1])])] == ["ValueError: text"]


def test_a_batch_acked_whole_is_one_range() -> None:
    """The record has 28 bytes for any number of rows, and it leaves only at the flush."""
    work = Work(3)
    work.settle(work.pool[:3])
    assert work.tracker.waiting == 3
    assert not work.out.sent
    assert work.sent() == [("range", (100, 3, 3))]
    assert work.tracker.waiting == 0
    assert work.sent() == []


@pytest.mark.parametrize("acked", [[0, 2], [2, 1, 0], [1]])
def test_other_acks_list_their_rows(acked: list[int]) -> None:
    """The bolt acked a part of the batch, or all of it in another order."""
    work = Work(3)
    work.settle([work.pool[place] for place in acked])
    assert work.sent() == [("ack", {100 + place: key_of(place) for place in acked})]


def test_the_first_ack_or_fail_counts() -> None:
    """Later acks and fails of a tuple are counted and have no effect."""
    work = Work(3)
    first, second, third = work.pool[:3]
    work.settle([first, first])
    work.settle([first], [first, second])
    work.settle([second], [second])
    work.settle([third])
    assert work.sent() == [("fail", [101]), ("ack", {100: key_of(0), 102: key_of(2)})]
    assert work.tracker.ignored == 5


def test_in_one_call_a_fail_counts_before_an_ack() -> None:
    """Their order is not known, and only an ack can lose the tuple, for example if an exception follows the ack."""
    work = Work(2)
    work.settle(work.pool[:2], [work.pool[1]])
    assert work.sent() == [("fail", [101]), ("ack", {100: key_of(0)})]
    assert work.tracker.ignored == 1


@pytest.mark.parametrize("failed", [[1], [0, 3], [3, 2, 0]])
def test_the_others_of_a_batch_are_acked_behind_its_fails(failed: list[int]) -> None:
    """A poison record must cost little for its neighbours: their ack is one range. Its own row takes children."""
    work, before = Work(4), Work(1, base=50)
    kept = before.pool[0]
    kept.id = before.batch
    left = [place for place in range(4) if place not in failed]
    work.settle([work.pool[place] for place in left], [*[work.pool[place] for place in failed], kept])
    assert work.sent() == [
        ("fail", [*[100 + place for place in failed], 50]),
        ("range", (100, 4, len(left))),
    ]
    assert [place for place in range(4) if work.batch.takes_children(place)] == sorted(failed)
    assert work.tracker.ignored == 0
    work.settle(work.pool[:4])
    assert work.sent() == []
    assert work.tracker.ignored == 4


@pytest.mark.parametrize(("acked", "counted"), [([0, 0, 2], [0, 2]), ([2, 0, 3], [0, 2, 3]), ([0, 1, 2], [0, 2])])
def test_acks_beside_a_fail_may_have_any_order_and_come_twice(acked: list[int], counted: list[int]) -> None:
    """They are as many as the rows that did not fail."""
    work = Work(4)
    work.settle([work.pool[place] for place in acked], [work.pool[1]])
    assert work.sent() == [("fail", [101]), ("ack", {100 + place: key_of(place) for place in counted})]


def test_acks_of_untracked_tuples_are_counted() -> None:
    """These are ticks, tuples of untracked batches, tuples that the author made, and unused pooled tuples."""
    work = Work(2)
    strangers = [TupleHelper.make_tick_tuple(), MAKE(UNTRACKED, (), 0), Tuple(), MAKE(None, (), 0), work.pool[2]]
    work.settle(strangers, strangers)
    work.tracker.in_work = None  # the batch in work is not tracked
    work.settle(work.pool[:2])
    assert work.sent() == []
    assert work.tracker.ignored == 2 * len(strangers) + 2


def test_a_kept_tuple_is_acked_for_its_own_batch() -> None:
    """The pool sets its id; a batch of the same size that is in work does not matter."""
    work = Work(2)
    kept = MAKE(ranged(4, base=500), (), 3)
    work.settle([work.pool[0], kept])
    work.settle([work.pool[1]])
    assert work.sent() == [("ack", {100: key_of(0), 503: key_of(3), 101: key_of(1)})]
    work.settle([kept])
    assert work.sent() == []


def test_a_tuple_acks_all_of_its_roots() -> None:
    """A tuple with several anchors has several roots, and a tuple without anchors has no root."""
    work = Work(3)
    work.batch.root_base = None
    work.batch.roots = memoryview(struct.pack("<3Q", *((SPOUT << COUNTER_BITS) | root for root in (7, 9, 8))))
    work.batch.root_rows = memoryview(struct.pack("<3q", 0, 0, 2))
    work.settle([work.pool[0], work.pool[1]])
    assert work.sent() == [("ack", {7: key_of(0), 9: key_of(0)})]
    work.settle([], [work.pool[2]])
    assert work.sent() == [("fail", [8])]


def test_whole_batches_may_be_settled_without_processing() -> None:
    """A batch that cannot be read fails, and a batch that arrives after the end is acked."""
    work = Work(2)
    work.tracker.fail_whole(ranged(2, base=300))
    work.tracker.ack_whole(ranged(3, base=400))
    assert work.tracker.waiting == 5
    assert work.sent() == [("fail", [300, 301]), ("range", (400, 3, 3))]


def test_a_tuple_takes_children_until_its_ack_has_left() -> None:
    """The ledger may have completed its root by then."""
    work = Work(3)
    work.settle([work.pool[1]])
    assert [work.batch.takes_children(row) for row in range(3)] == [True, True, True]
    work.sent()
    assert [work.batch.takes_children(row) for row in range(3)] == [True, False, True]
    whole = Work(3)
    whole.settle(whole.pool[:3])
    whole.sent()
    assert not any(whole.batch.takes_children(row) for row in range(3))


def test_adjacent_tuples_of_one_root_are_acked_as_one() -> None:
    """The words of one line are adjacent: the ledger would XOR them anyway, and the message is half as large."""
    batch = TrackedBatch(TASK, 5, KEY)
    line, other = (SPOUT << COUNTER_BITS) | 7, (SPOUT << COUNTER_BITS) | 8
    batch.roots = memoryview(b"\0" + struct.pack("<5Q", line, line, other, line, line))[1:]
    keys = edge_keys(KEY, np.arange(5, dtype=np.uint64), TASK)
    (data,) = BatchAcks().ack_segments([AckedRows(batch)])
    ack = parse_ack(data, parse_segment(data, 0))
    assert ack.roots is not None
    assert ack.roots.tolist() == [7, 8, 7]
    assert ack.xors.tolist() == [keys[0] ^ keys[1], keys[2], keys[3] ^ keys[4]]
