"""Frames and segments: parsing returns the written values, and garbage raises only a typed error."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heron.errors import RemoteProtocolError, Violation
from heron.ipc.frames.frame import (
    FRAME_HEADER_BYTES,
    MOST_ROWS,
    SEGMENT_HEADER_BYTES,
    Encoding,
    FrameKind,
    Marker,
    SegmentKind,
    credit_body,
    frame_header,
    marker_segment,
    option,
    parse_credit,
    parse_frame_header,
    parse_segment,
    retargeted,
    segment,
    segment_routes,
)

_U32 = st.integers(0, 2**32 - 1)
_ROWS = st.integers(0, MOST_ROWS)
_DESTINATIONS = st.lists(_U32, max_size=5)


@st.composite
def segments(draw: st.DrawFn) -> bytes:
    tags = draw(st.lists(st.tuples(st.integers(0, 2**16 - 1), st.binary(max_size=20)), max_size=3))
    return segment(
        draw(_DESTINATIONS),
        draw(st.binary(max_size=60)),
        kind=draw(st.sampled_from(SegmentKind)),
        encoding=draw(st.sampled_from(Encoding)),
        stream=draw(st.integers(0, 2**16 - 1)),
        plan_version=draw(_U32),
        source_task=draw(_U32),
        incarnation=draw(_U32),
        rows=draw(_ROWS),
        options=b"".join(option(tag, value) for tag, value in tags),
    )


def plain(destinations: list[int], payload: bytes = b"rows", options: bytes = b"") -> bytes:
    return segment(
        destinations,
        payload,
        kind=SegmentKind.TUPLES,
        encoding=Encoding.PICKLE,
        stream=3,
        plan_version=4,
        source_task=5,
        incarnation=6,
        rows=7,
        options=options,
    )


def frame_of(*parts: bytes) -> bytes:
    return b"".join((frame_header(FrameKind.DATA, 9, 10), *parts))


@given(st.lists(segments(), max_size=4))
def test_a_frame_is_cut_into_its_segments(parts: list[bytes]) -> None:
    """A stream manager cuts by lengths only, so each cut must be exactly one segment."""
    frame = frame_of(*parts)
    cuts = [frame[start:end] for start, end, _ in segment_routes(frame)]
    assert cuts == parts
    for start, end, destinations in segment_routes(memoryview(frame)):
        head = parse_segment(frame, start)
        assert head.end == end
        assert head.destinations == destinations


@given(
    destinations=_DESTINATIONS,
    payload=st.binary(max_size=60),
    rows=_ROWS,
    options=st.dictionaries(st.integers(0, 2**16 - 1), st.binary(max_size=20), max_size=4),
)
def test_a_parsed_head_has_the_written_values(
    destinations: list[int], payload: bytes, rows: int, options: dict[int, bytes]
) -> None:
    """Unknown option tags are kept, because later versions may add some."""
    data = segment(
        destinations,
        payload,
        kind=SegmentKind.TUPLES,
        encoding=Encoding.ARROW,
        stream=3,
        plan_version=4,
        source_task=5,
        incarnation=6,
        rows=rows,
        options=b"".join(option(tag, value) for tag, value in options.items()),
    )
    head = parse_segment(b"xx" + data, 2)
    assert (head.kind, head.encoding, head.stream, head.plan_version) == (SegmentKind.TUPLES, Encoding.ARROW, 3, 4)
    assert (head.source_task, head.incarnation, head.rows) == (5, 6, rows)
    assert head.destinations == tuple(destinations)
    assert {tag: bytes(value) for tag, value in head.options.items()} == options
    assert (b"xx" + data)[head.payload_start : head.end] == payload


@given(segments(), _DESTINATIONS)
def test_retargeting_changes_only_the_destinations(data: bytes, destinations: list[int]) -> None:
    """The payload stays as the emitting task encoded it."""
    before, after = parse_segment(data, 0), parse_segment(retargeted(data, destinations), 0)
    changed = bytes(retargeted(memoryview(data), destinations))
    assert after.destinations == tuple(destinations)
    assert changed[after.payload_start : after.end] == data[before.payload_start : before.end]
    assert {tag: bytes(each) for tag, each in after.options.items()} == {
        tag: bytes(each) for tag, each in before.options.items()
    }
    assert retargeted(changed, before.destinations) == data


def test_retargeting_to_the_same_destinations_does_not_copy() -> None:
    """One destination is the usual case and must cost nothing."""
    data = plain([8])
    assert retargeted(data, [8]) is data


def test_every_truncated_frame_is_a_typed_error() -> None:
    """A truncated frame ends its session, but not the process."""
    first, second = plain([1, 2], options=option(1, b"12345678")), plain([3])
    whole = frame_of(first, second)
    fine = {FRAME_HEADER_BYTES, FRAME_HEADER_BYTES + len(first), len(whole)}
    for size in range(len(whole)):
        if size in fine:
            continue
        with pytest.raises(RemoteProtocolError):
            read_all(whole[:size])


def read_all(frame: bytes) -> None:
    parse_frame_header(frame)
    for start, _, _ in segment_routes(frame):
        parse_segment(frame, start)


@given(st.binary(max_size=120), segments())
def test_garbage_is_read_or_refused(garbage: bytes, data: bytes) -> None:
    """Any bytes are either parsed or raise RemoteProtocolError."""
    for frame in (garbage, frame_of(garbage), frame_of(data, garbage)):
        try:
            read_all(frame)
        except RemoteProtocolError:
            continue


@pytest.mark.parametrize("length", [0, SEGMENT_HEADER_BYTES - 1, SEGMENT_HEADER_BYTES, 2**32 - 1])
def test_a_wrong_segment_length_is_refused(length: int) -> None:
    """Length 0 would never end the loop, and a large one would exceed the frame."""
    data = bytearray(frame_of(plain([1])))
    struct.pack_into("<I", data, FRAME_HEADER_BYTES, length)
    with pytest.raises(RemoteProtocolError, match="does not fit"):
        list(segment_routes(bytes(data)))


def test_an_option_beyond_its_segment_is_refused() -> None:
    """The length of an option is checked, too."""
    data = bytearray(plain([1], options=option(2, b"1234")))
    struct.pack_into("<I", data, SEGMENT_HEADER_BYTES + 4 + 4, 5)
    with pytest.raises(RemoteProtocolError, match="optional field 2 of 5 bytes"):
        parse_segment(bytes(data), 0)


def test_another_wire_version_is_refused() -> None:
    """The version comes first, so that each version can detect the others."""
    with pytest.raises(RemoteProtocolError, match="wire version 2"):
        parse_frame_header(b"\x02" + frame_header(FrameKind.DATA, 1, 1)[1:])


def test_a_marker_carries_kind_and_value() -> None:
    """Markers use the stream field for their kind and eight bytes for their value."""
    head = parse_segment(
        data := marker_segment([4, 5], Marker.PLAN, -2, plan_version=1, source_task=2, incarnation=3), 0
    )
    assert (head.kind, head.stream, head.rows, head.destinations) == (SegmentKind.MARKER, Marker.PLAN, 0, (4, 5))
    assert struct.unpack("<q", data[head.payload_start : head.end]) == (-2,)


def test_credit_names_task_and_bytes() -> None:
    """The body of a credit frame has exactly 12 bytes."""
    frame = frame_header(FrameKind.CREDIT, 1, 0) + credit_body(7, 2**40)
    assert parse_credit(frame) == (7, 2**40)
    for wrong in (frame[:-1], frame + b"x"):
        with pytest.raises(RemoteProtocolError, match="credit frame"):
            parse_credit(wrong)


def test_a_segment_with_more_tuples_than_any_sender_makes_is_refused() -> None:
    """A tuple without values takes no bytes, so 80 bytes could make a task build four thousand million tuples."""
    data = bytearray(plain([1]))
    data[20:24] = (MOST_ROWS + 1).to_bytes(4, "little")
    with pytest.raises(
        RemoteProtocolError, match=r"task 5 with 1048577 tuples exceeds the limit of 1048576 tuples"
    ) as refused:
        parse_segment(bytes(data), 0)
    assert refused.value.violation is Violation.SIZE


@pytest.mark.parametrize("kind", [0, 5, 255])
def test_a_frame_of_an_unknown_kind_is_refused_before_its_body(kind: int) -> None:
    """Each violation has its word, by which it is counted."""
    with pytest.raises(RemoteProtocolError, match=rf"frame of kind {kind}, which is unknown") as refused:
        parse_frame_header(bytes((1, kind)) + bytes(14))
    assert refused.value.violation is Violation.KIND
