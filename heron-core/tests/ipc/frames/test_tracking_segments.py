"""Segments about roots: parsing returns the written values, and garbled segments are refused."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from heron.errors import RemoteProtocolError
from heron.ipc.frames.frame import SegmentHead, SegmentKind, parse_segment
from heron.ipc.frames.tracking import (
    COUNTER_BITS,
    DERIVED,
    LISTED,
    MAX_DERIVED_ROWS,
    RootOutcome,
    ack_range,
    new_roots_derived,
    parse_settled,
    tracking_segment,
)
from heron.ipc.frames.tracking_arrays import (
    acks,
    edge_keys,
    edge_keys_of_range,
    fails,
    new_roots_listed,
    parse_ack,
    parse_fail,
    parse_new_roots,
    settled,
)

TASK = 7
KEY = 0xFEDC_BA98_7654_3210


def read(segment: bytes) -> tuple[bytes, SegmentHead]:
    return segment, parse_segment(segment, 0)


def test_roots_of_rows_for_several_tasks_are_parsed_as_the_xor_of_their_keys() -> None:
    """Both sides derive the keys, so the segment does not carry them."""
    segment, head = read(new_roots_derived(TASK, 100, KEY, 5, (3, 4)))
    roots = parse_new_roots(segment, head)
    assert head.destinations == (TASK,)
    assert roots.base == 100
    assert roots.xors.tolist() == (edge_keys_of_range(KEY, 5, 3) ^ edge_keys_of_range(KEY, 5, 4)).tolist()


def test_listed_roots_are_parsed_as_written() -> None:
    """A root without copies has the XOR zero."""
    xors = np.array([5, 0, 2**64 - 1], dtype=np.uint64)
    roots = parse_new_roots(*read(b"".join(new_roots_listed(TASK, 9, xors))))
    assert (roots.base, roots.xors.tolist()) == (9, xors.tolist())


def test_the_ack_of_a_range_equals_single_acks() -> None:
    """The short form must have the same meaning."""
    rows = np.arange(4, dtype=np.uint64)
    whole = parse_ack(*read(ack_range((TASK << COUNTER_BITS) | 50, KEY, 3, 4)))
    (single,) = acks(rows + np.uint64((TASK << COUNTER_BITS) | 50), edge_keys(KEY, rows, 3))
    listed = parse_ack(*read(single))
    assert whole.roots is None
    assert listed.roots is not None
    assert listed.roots.tolist() == list(range(whole.base, whole.base + 4))
    assert listed.xors.tolist() == whole.xors.tolist()


def test_acks_and_fails_are_divided_by_the_task_of_their_roots() -> None:
    """Each task has its own ledger, maybe in another process. The order within a task stays."""
    roots = np.array([(2 << COUNTER_BITS) | 8, (1 << COUNTER_BITS) | 9, (2 << COUNTER_BITS) | 3], dtype=np.uint64)
    xors = np.array([10, 11, 12], dtype=np.uint64)
    found = {}
    for segment, head in map(read, acks(roots, xors)):
        ack = parse_ack(segment, head)
        assert ack.roots is not None
        found[head.destinations] = (ack.roots.tolist(), ack.xors.tolist())
    assert found == {(1,): ([9], [11]), (2,): ([8, 3], [10, 12])}
    failed = {head.destinations: parse_fail(segment, head) for segment, head in map(read, fails(roots))}
    assert failed == {(1,): [9], (2,): [8, 3]}
    nothing = np.empty(0, dtype=np.uint64)
    assert [*acks(nothing, nothing), *fails(nothing)] == []


@pytest.mark.parametrize("outcome", list(RootOutcome))
@pytest.mark.parametrize("counters", [[5], [5, 6, 7], [7, 6, 5], [5, 7, 8], [6, 5, 7]])
def test_settled_roots_keep_their_order(outcome: RootOutcome, counters: list[int]) -> None:
    """`Spout.ack` is called in the order of completion, in either encoding."""
    found, roots = parse_settled(*read(b"".join(settled(TASK, outcome, np.array(counters, dtype=np.int64)))))
    assert (found, list(roots)) == (outcome, counters)


def garbled() -> dict[str, bytes]:
    """Segments whose payload does not match their head."""
    roots, ack, fail, done = SegmentKind.ROOTS, SegmentKind.ACK, SegmentKind.FAIL, SegmentKind.SETTLED
    many = MAX_DERIVED_ROWS + 1
    too_far = struct.pack("<QQIQ", 1 << COUNTER_BITS, KEY, 3, 2)
    return {
        "roots: short list": tracking_segment(TASK, roots, LISTED, 3, b"\0" * 24),
        "roots: no base": tracking_segment(TASK, roots, LISTED, 3, b""),
        "roots: counter too large": tracking_segment(TASK, roots, LISTED, 1, b"\xff" * 16),
        "roots: short range": tracking_segment(TASK, roots, DERIVED, 3, b"\0" * 27),
        "roots: rows differ": tracking_segment(TASK, roots, DERIVED, 3, struct.pack("<QQIQI", 1, KEY, 1, 4, 3)),
        "roots: tasks missing": tracking_segment(TASK, roots, DERIVED, 3, struct.pack("<QQIQI", 1, KEY, 2, 3, 3)),
        "roots: too many derived": tracking_segment(
            TASK, roots, DERIVED, many, struct.pack("<QQIQI", 1, KEY, 1, many, 3)
        ),
        "ack: too many derived": tracking_segment(TASK, ack, DERIVED, many, struct.pack("<QQIQ", 1, KEY, 3, many)),
        "settled: counter too large": tracking_segment(
            TASK, done, DERIVED, 2, ((1 << COUNTER_BITS) - 1).to_bytes(8, "little")
        ),
        "ack: short list": tracking_segment(TASK, ack, LISTED, 2, b"\0" * 31),
        "ack: long range": tracking_segment(TASK, ack, DERIVED, 2, struct.pack("<QQIQI", 1, KEY, 3, 2, 0)),
        "ack: more acked than rows": tracking_segment(TASK, ack, DERIVED, 4, struct.pack("<QQIQ", 1, KEY, 3, 3)),
        "ack: counter too large": tracking_segment(TASK, ack, DERIVED, 2, too_far),
        "fail: odd length": tracking_segment(TASK, fail, LISTED, 2, b"\0" * 15),
        "settled: short list": tracking_segment(TASK, done, LISTED, 2, b"\0" * 8),
        "settled: no first": tracking_segment(TASK, done, DERIVED, 2, b""),
        "settled: no such outcome": tracking_segment(TASK, done, DERIVED, 1, b"\0" * 8, stream=9),
    }


PARSERS = {
    SegmentKind.ROOTS: parse_new_roots,
    SegmentKind.ACK: parse_ack,
    SegmentKind.FAIL: parse_fail,
    SegmentKind.SETTLED: parse_settled,
}


@pytest.mark.parametrize("name", list(garbled()))
def test_a_garbled_segment_is_refused(name: str) -> None:
    """It raises a protocol error, which ends the session, and no error of numpy."""
    segment, head = read(garbled()[name])
    with pytest.raises(RemoteProtocolError):
        PARSERS[SegmentKind(head.kind)](segment, head)
