"""The records of a frame: as records and as columns, in parts, and apart where the log has a gap."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from heron_connector_dlog.block import Block, blocks_of
from heron_connector_dlog.columns import batch_of
from heron_connector_dlog.record import Place, Record

LOG = "clicks"


def body_of(records: Sequence[Record]) -> bytes:
    """As the README describes it for Java's side."""
    numbers = [[getattr(each.place, name) for each in records] for name in ("segment", "entry", "slot", "passed")]
    numbers.append([each.transaction_id for each in records])
    longs = b"".join(struct.pack(f">{len(records)}q", *each) for each in numbers)
    sizes = struct.pack(f">{len(records)}i", *(len(each.data) for each in records))
    return struct.pack(">i", len(records)) + longs + sizes + b"".join(each.data for each in records)


def records_at(passed: Sequence[int]) -> list[Record]:
    return [
        Record(LOG, Place(1, number // 3, number % 3, each), 100 + number, b"x" * (number % 7))
        for number, each in enumerate(passed)
    ]


def records_of(blocks: Sequence[Block]) -> list[Record]:
    return [record for each in blocks for record in each.records(LOG)]


@given(count=st.integers(1, 20), begin=st.integers(0, 10), cuts=st.lists(st.integers(0, 20)))
def test_parts_have_the_records_of_the_whole(count: int, begin: int, cuts: list[int]) -> None:
    """Whatever a task reads at once, each record comes once, in order, and at its place; columns have the same."""
    records = records_at(range(begin, begin + count))
    (whole,) = blocks_of(body_of(records))
    bounds = sorted({0, count, *(cut for cut in cuts if cut < count)})
    parts = [whole.part(first, last) for first, last in pairwise(bounds)]
    assert records_of(parts) == records_of([whole]) == records
    assert [each.place(0) for each in parts] == [records[bound].place for bound in bounds[:-1]]
    assert [each.frame_bytes > 0 for each in parts] == [False] * (len(parts) - 1) + [True]
    assert parts[0].behind() > records[bounds[1] - 1].place
    batch = batch_of(LOG, ("stream", "slot", "transaction_id", "data"), parts)
    assert batch.to_pylist() == [
        {"stream": LOG, "slot": each.place.slot, "transaction_id": each.transaction_id, "data": each.data}
        for each in records
    ]


def test_a_gap_ends_a_block_and_unknown_numbers_do_not() -> None:
    """The reader judges each gap. Old logs have no sequence ids."""
    gapped = records_at([4, 5, 8, 9, 10])
    blocks = blocks_of(body_of(gapped))
    assert [len(each) for each in blocks] == [2, 3]
    assert [each.frame_bytes > 0 for each in blocks] == [False, True]
    assert records_of(blocks) == gapped
    assert blocks[0].behind() == Place(1, 0, 2, 6)
    (old,) = blocks_of(body_of(records_at([-7, -7, -7])))
    assert [each.place.passed for each in records_of([old])] == [-1, -1, -1]
    assert old.behind() == Place(1, 0, 3, -1)


def test_the_end_of_reading_is_found_within_a_block() -> None:
    """An end is a place that no record need have."""
    (block,) = blocks_of(body_of(records_at(range(7))))
    ends = [Place(1, 0, 0), Place(1, 1, 0), Place(1, 1, 9), Place(2, 0, 0)]
    assert [block.rows_before(each) for each in ends] == [0, 3, 6, 7]
