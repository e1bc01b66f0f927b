"""Frames within their limits: how a message is divided, what a receiver refuses, and what a segment can hold."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heron.errors import LimitExceededError, RemoteProtocolError
from heron.ipc.frames.frame import (
    FRAME_HEADER_BYTES,
    MOST_DESTINATIONS,
    SEGMENT_HEADER_BYTES,
    FrameKind,
    destination_lists,
    parse_segment,
)
from heron.ipc.frames.frame_limits import CONTROL_MAX_BYTES, MOST_LISTED, FrameLimits, divided, options_max_bytes
from heron.ipc.frames.sent_frames import SentFrames
from heron.ipc.frames.tracking import RootOutcome, parse_settled
from heron.ipc.frames.tracking_arrays import (
    acks,
    fails,
    new_roots_listed,
    parse_ack,
    parse_fail,
    parse_new_roots,
    row_numbers,
    settled,
)
from heron.kernel.settings import EngineSettings
from parts import tuple_segment

LIMIT = 1000
ROOM = LIMIT - FRAME_HEADER_BYTES


@given(st.lists(st.integers(1, ROOM) | st.sampled_from([1, ROOM - 1, ROOM]), max_size=40))
def test_each_frame_is_within_the_limit_and_order_and_content_stay(sizes: list[int]) -> None:
    """A segment is never cut, and no frame is empty or could have taken the first segment of the next one."""
    segments = [bytes([number]) * size for number, size in enumerate(sizes)]
    frames = list(divided(segments, LIMIT))
    assert [each for frame, _ in frames for each in frame] == segments
    for frame, size_bytes in frames:
        assert 0 < size_bytes == sum(map(len, frame)) <= ROOM
    for (_, size_bytes), (following, _) in pairwise(frames):
        assert size_bytes + len(following[0]) > ROOM


def test_a_message_that_fits_is_not_copied() -> None:
    """It is the usual case."""
    segments = [b"a" * 10, b"b" * 20]
    ((frame, size_bytes),) = divided(segments, LIMIT)
    assert frame is segments
    assert size_bytes == 30


def test_a_segment_above_the_limit_is_named() -> None:
    """No sender makes one; a silent cut would be a wrong result."""
    with pytest.raises(LimitExceededError, match=f"segment of {ROOM + 1} bytes .* {LIMIT} bytes; raise heron.tuple"):
        list(divided([b"a", b"b" * (ROOM + 1)], LIMIT))


@pytest.mark.parametrize("tuple_max_bytes", [1024, 16 * 1024 * 1024])
@pytest.mark.parametrize("batch_bytes", [1024, 512 * 1024])
def test_the_largest_segments_fit_into_a_frame(tuple_max_bytes: int, batch_bytes: int) -> None:
    """Under any settings: the payload, the options and the destinations may all be at their limits."""
    limit = EngineSettings(tuple_max_bytes=tuple_max_bytes, batch_bytes=batch_bytes).frame_max_bytes
    traces = 1024
    head = FRAME_HEADER_BYTES + SEGMENT_HEADER_BYTES + 4 * MOST_DESTINATIONS
    assert head + traces + options_max_bytes(tuple_max_bytes) + tuple_max_bytes <= limit
    assert head + 16 * MOST_LISTED <= limit


@pytest.mark.parametrize("kind", [FrameKind.DATA, FrameKind.ACK, FrameKind.CONTROL])
def test_a_receiver_refuses_a_frame_above_its_limit(kind: FrameKind) -> None:
    """The limit of the socket is larger, so that the error can name the frame."""
    limits = FrameLimits(LIMIT)
    most_bytes = CONTROL_MAX_BYTES if kind == FrameKind.CONTROL else LIMIT
    limits.check(kind, most_bytes)
    assert limits.socket_bytes > most_bytes
    with pytest.raises(RemoteProtocolError, match=f"{most_bytes + 1} bytes, more than the limit of {most_bytes} bytes"):
        limits.check(kind, most_bytes + 1)


def test_too_many_destinations_are_divided_or_named() -> None:
    """The field has 16 bits."""
    tasks = range(1, MOST_DESTINATIONS + 3)
    first, second = destination_lists(tasks)
    assert [*first, *second] == list(tasks)
    assert parse_segment(tuple_segment([("v",)], first), 0).destinations == tuple(first)
    assert destination_lists((1, 2)) == ((1, 2),)
    with pytest.raises(LimitExceededError, match=f"task 1 with {len(tasks)} destinations.*{MOST_DESTINATIONS} dest"):
        tuple_segment([("v",)], tasks)


def test_too_many_rows_are_named() -> None:
    """The field has 32 bits, and columns of nothing need no memory."""
    with pytest.raises(LimitExceededError, match="4294967296 rows"):
        tuple_segment([("v",)], [1], rows=1 << 32)


@pytest.mark.parametrize("count", [1, MOST_LISTED, MOST_LISTED + 1, 3 * MOST_LISTED + 5])
def test_listed_roots_are_divided(count: int) -> None:
    """All roots in flight may fail at once. Each segment has at most 512 KiB, and the roots keep their order."""
    roots = (row_numbers(count) << np.uint64(1)) | np.uint64(7 << 48)
    counters = (roots & np.uint64((1 << 48) - 1)).astype(np.int64)
    made = {
        "new": new_roots_listed(7, 9, roots),
        "ack": list(acks(roots, roots)),
        "fail": list(fails(roots)),
        "settled": settled(7, RootOutcome.LOST, counters),
    }
    assert {len(each) for each in made.values()} == {-(-count // MOST_LISTED)}
    assert max(len(each) for segments in made.values() for each in segments) < 600_000
    heads = {name: [(each, parse_segment(each, 0)) for each in segments] for name, segments in made.items()}
    news = [parse_new_roots(*each) for each in heads["new"]]
    assert [each.base for each in news] == list(range(9, 9 + count, MOST_LISTED))
    assert np.array_equal(np.concatenate([each.xors for each in news]), roots)
    acked = [parse_ack(*each) for each in heads["ack"]]
    assert np.array_equal(np.concatenate([each.roots for each in acked if each.roots is not None]), counters)
    assert np.array_equal(np.concatenate([each.xors for each in acked]), roots)
    assert np.array_equal(np.concatenate([parse_fail(*each) for each in heads["fail"]]), counters)
    assert [root for each in heads["settled"] for root in parse_settled(*each)[1]] == counters.tolist()


def test_the_sender_knows_what_a_refusal_loses() -> None:
    """Confirmed frames have arrived. The frame after those that the receiver took is the refused one."""
    sent = SentFrames()
    for sequence in range(1, 6):
        sent.note(sequence, 100 * sequence, [tuple_segment([("v",)] * sequence, (2,))])
    sent.confirm(2)
    lost = sent.lost(3, 450)
    assert (lost.frames, lost.rows) == (2, 9)
    assert str(lost) == (
        "frame 4 was sent as a data frame of 400 bytes with 4 tuples, within the limit of 450 bytes; "
        "9 tuples in 2 data frames are lost"
    )
    assert "500 bytes with 5 tuples, above the limit of 450 bytes" in sent.lost(4, 450).refused
    assert sent.lost(5, 450).refused == "frame 6 was no data frame here"
