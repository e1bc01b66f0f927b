"""Received batches: tracked, untracked and garbled segments, and the settling of tuples."""

from __future__ import annotations

import struct

import pytest

from heron.errors import RemoteProtocolError
from heron.instance.acks.tracked_batch import TrackedBatch, tracked_batch
from heron.ipc.frames.frame import Encoding, OptionTag, SegmentHead, SegmentKind, option, parse_segment, segment

KEY = option(OptionTag.BATCH_KEY, (77).to_bytes(8, "little"))
BASE = option(OptionTag.ROOT_BASE, (1000).to_bytes(8, "little"))


def u64(tag: OptionTag, *values: int) -> bytes:
    return option(tag, struct.pack(f"<{len(values)}q", *values))


def head_of(options: bytes, rows: int = 3) -> SegmentHead:
    data = segment(
        (5,),
        b"",
        kind=SegmentKind.TUPLES,
        encoding=Encoding.PICKLE,
        stream=0,
        plan_version=1,
        source_task=1,
        incarnation=0,
        rows=rows,
        options=options,
    )
    return parse_segment(data, 0)


def test_a_segment_without_a_key_is_not_tracked() -> None:
    """No ledger waits for its acks."""
    assert tracked_batch(head_of(b""), 5) is None
    assert tracked_batch(head_of(u64(OptionTag.EVENT_TIMES, 1, 2, 3)), 5) is None


def test_a_range_of_roots_needs_no_arrays() -> None:
    """One record can ack it."""
    batch = tracked_batch(head_of(KEY + BASE), 5)
    assert batch is not None
    assert (batch.task_id, batch.rows, batch.batch_key, batch.root_base) == (5, 3, 77, 1000)
    assert batch.is_range()
    divided = tracked_batch(head_of(KEY + BASE + u64(OptionTag.ROW_NUMBERS, 0, 2, 4)), 5)
    assert divided is not None
    assert not divided.is_range()


@pytest.mark.parametrize("rows", [(), (0, 0, 2), (1,), (0, 1, 1, 1, 2)])
def test_a_row_may_have_no_roots_or_several(rows: tuple[int, ...]) -> None:
    """A row with several anchors has several roots, and a row without anchors has none."""
    options = KEY + u64(OptionTag.ROOTS, *range(len(rows))) + u64(OptionTag.ROOT_ROWS, *rows)
    assert tracked_batch(head_of(options), 5) is not None


@pytest.mark.parametrize(
    "options",
    [
        KEY,
        option(OptionTag.BATCH_KEY, b"short") + BASE,
        option(OptionTag.BATCH_KEY, b"much too long") + BASE,
        KEY + option(OptionTag.ROOT_BASE, b""),
        KEY + option(OptionTag.ROOT_BASE, b"123456789"),
        KEY + BASE + u64(OptionTag.ROOT_ROWS, 0, 1, 2),
        KEY + BASE + u64(OptionTag.ROW_NUMBERS, 0, 1),
        KEY + u64(OptionTag.ROOTS, 1, 2),
        KEY + u64(OptionTag.ROOTS, 1, 2) + u64(OptionTag.ROOT_ROWS, 0),
        KEY + option(OptionTag.ROOTS, b"12345") + option(OptionTag.ROOT_ROWS, b"12345"),
        KEY + u64(OptionTag.ROOTS, 1, 2) + u64(OptionTag.ROOT_ROWS, 0, 3),
        KEY + u64(OptionTag.ROOTS, 1, 2) + u64(OptionTag.ROOT_ROWS, -1, 0),
        KEY + u64(OptionTag.ROOTS, 1, 2) + u64(OptionTag.ROOT_ROWS, 2, 0),
    ],
)
def test_roots_that_do_not_fit_the_rows_are_rejected(options: bytes) -> None:
    """They are rejected when the segment is read. An error at the ack would end the task."""
    with pytest.raises(RemoteProtocolError, match="do not fit its 3 rows"):
        tracked_batch(head_of(options), 5)


def test_a_unit_is_acked_with_its_last_tuple_and_fails_with_its_first() -> None:
    """The ledger knows one row: an ack with the first tuple would complete the root before the others are processed."""
    unit = TrackedBatch(5, 1, 77, tuples=3)
    assert unit.rows_acked(unit.settle([0, 2])) == []
    assert unit.rows_acked(unit.settle([1])) == [0]
    failing = TrackedBatch(5, 1, 77, tuples=3)
    assert failing.rows_acked(failing.settle([0])) == []
    assert failing.rows_failed(failing.settle([1])) == [0]
    assert failing.settle([0, 1, 2]) == []


def test_each_tuple_is_settled_once() -> None:
    """Later acks and fails of a tuple are not returned."""
    batch = TrackedBatch(5, 4, 77)
    assert batch.untouched()
    assert batch.settle([2, 0, 2]) == [2, 0]
    assert not batch.untouched()
    assert batch.settle([0, 1]) == [1]
    batch.settle_all()
    assert batch.settle([0, 1, 2, 3]) == []
