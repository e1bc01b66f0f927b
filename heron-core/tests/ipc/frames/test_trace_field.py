"""The trace option: its bytes, the times that hops write into it, and options that no peer of this version writes."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heron.errors import RemoteProtocolError
from heron.ipc.frames.frame import FRAME_HEADER_BYTES, OptionTag, option, parse_segment, retargeted
from heron.ipc.frames.trace_field import (
    MOST_ENTRIES,
    TRACED,
    TraceEntry,
    TraceField,
    is_traced,
    parse_trace,
    stamp_departure,
    stamp_sent,
    trace_option,
    traced_copy,
    traced_segment,
)
from heron.spi.tracing import StampKind
from parts import data_frame, tuple_segment

ENTRY = TraceEntry(trace_id=0xABC, parent_id=0xDEF, row=1, budget=255, emitted_ns=5)
SLOT_BYTES = 24


def traced(*entries: TraceEntry, tasks: tuple[int, ...] = (2,), options: bytes = b"", rows: int = 3) -> bytearray:
    made = tuple_segment([(n,) for n in range(rows)], tasks, options=trace_option(entries or (ENTRY,)) + options)
    return bytearray(traced_segment(made))


def field_of(segment: bytes | bytearray) -> TraceField:
    field = parse_trace(parse_segment(segment, 0))
    assert field is not None
    return field


def kinds(segment: bytes | bytearray) -> list[StampKind]:
    return [each.kind for each in field_of(segment).stamps]


def test_an_option_is_read_as_it_was_written() -> None:
    """Rows ascend; the first time is that of the flush."""
    late = replace(ENTRY, row=2)
    field = field_of(traced(late, ENTRY))
    assert field.entries == (ENTRY, late)
    assert [each.kind for each in field.stamps] == [StampKind.FLUSHED]


def test_the_emit_has_the_wall_clock_of_the_flush() -> None:
    """Both times are of one process, so the distance of the monotonic clock holds for the wall clock too."""
    field = field_of(traced())
    (flushed,) = field.stamps
    emitted, *others = field.stamps_of(replace(ENTRY, emitted_ns=flushed.monotonic_ns - 7))
    assert (emitted.kind, emitted.clock, others) == (StampKind.EMITTED, flushed.clock, [flushed])
    assert (flushed.monotonic_ns - emitted.monotonic_ns, flushed.wall_ns - emitted.wall_ns) == (7, 7)


def test_each_hop_writes_its_own_time() -> None:
    """The way through two stream managers: each copies the segment from a frame, and stamps its departure."""
    segment = traced()
    size = len(segment)
    assert stamp_sent([b"another", segment]) == TRACED
    first = traced_copy(data_frame(segment), FRAME_HEADER_BYTES, FRAME_HEADER_BYTES + size, StampKind.ROUTED)
    assert first is not None
    assert stamp_departure([first]) == TRACED
    second = traced_copy(data_frame(first), FRAME_HEADER_BYTES, FRAME_HEADER_BYTES + size, StampKind.PEER_ROUTED)
    assert second is not None
    stamp_departure([second])
    assert kinds(second) == [
        StampKind.FLUSHED,
        StampKind.SENT,
        StampKind.ROUTED,
        StampKind.FORWARDED,
        StampKind.PEER_ROUTED,
        StampKind.PEER_FORWARDED,
    ]
    times = [each.monotonic_ns for each in field_of(second).stamps]
    assert times == sorted(times)
    assert len(second) == size


def test_an_untraced_segment_is_not_copied_or_stamped() -> None:
    """Most segments of a traced frame are of this kind."""
    segment = tuple_segment([(1,)], [2])
    assert (
        traced_copy(data_frame(segment), FRAME_HEADER_BYTES, FRAME_HEADER_BYTES + len(segment), StampKind.SENT) is None
    )
    assert stamp_departure([segment, memoryview(segment)]) == 0


def test_a_segment_with_other_destinations_keeps_its_times() -> None:
    """A stream manager lists only the tasks that it sends to."""
    segment = traced(tasks=(2, 3, 4), options=option(OptionTag.BATCH_KEY, bytes(8)))
    stamp_sent([segment])
    fewer = bytearray(retargeted(segment, (3,)))
    assert is_traced(fewer)
    stamp_departure([fewer])
    assert kinds(fewer) == [StampKind.FLUSHED, StampKind.SENT, StampKind.FORWARDED]
    assert parse_segment(fewer, 0).options[OptionTag.BATCH_KEY] == bytes(8)


def test_only_as_many_rows_are_written_as_a_reader_accepts() -> None:
    """More traced rows are cut by the task that emits them."""
    assert len(field_of(traced(*[replace(ENTRY, row=n) for n in range(20)], rows=20)).entries) == MOST_ENTRIES


def damaged(value: bytes, rows: int = 3) -> bytes:
    return tuple_segment([(n,) for n in range(rows)], [2], options=option(OptionTag.TRACE, value))


VALUE = trace_option([ENTRY])[8:]


@pytest.mark.parametrize(
    "value",
    [
        b"",
        VALUE[:-1],
        VALUE + b"x",
        VALUE[: 6 * SLOT_BYTES],  # no row
        VALUE + VALUE[6 * SLOT_BYTES :] * MOST_ENTRIES,  # one too many
        bytes(SLOT_BYTES) + VALUE[SLOT_BYTES:],  # no time of the flush
        struct.pack("<IIqq", 1, 0, -1, 5) + VALUE[SLOT_BYTES:],
        struct.pack("<IIqq", 1, 0, 5, 2**63 - 1) + VALUE[SLOT_BYTES:],
        VALUE[: 6 * SLOT_BYTES] + struct.pack("<QQIIq", 0, 1, 1, 1, 5),  # no trace
        VALUE[: 6 * SLOT_BYTES] + struct.pack("<QQIIq", 1, 1, 3, 1, 5),  # a row that is not there
        VALUE[: 6 * SLOT_BYTES] + struct.pack("<QQIIq", 1, 1, 1, 1, -5),
    ],
)
def test_an_option_that_no_peer_writes_is_an_error(value: bytes) -> None:
    """The receiver counts it; it must not become a span."""
    with pytest.raises(RemoteProtocolError, match="trace option"):
        parse_trace(parse_segment(damaged(value), 0))


@given(st.binary(max_size=600), st.integers(0, 255))
def test_any_bytes_are_refused_or_read_and_never_break_a_hop(value: bytes, tag: int) -> None:
    """A stream manager writes only into an option that it recognises, and changes no other byte."""
    segment = bytearray(traced_segment(tuple_segment([(1,)], [2], options=option(tag, value))))
    before = bytes(segment)
    stamp_sent([segment])
    stamp_departure([segment])
    if tag != OptionTag.TRACE or len(value) < 6 * SLOT_BYTES:
        assert segment == before
    assert segment[len(segment) - 20 :] == before[len(before) - 20 :]
    try:
        parse_trace(parse_segment(damaged(value, rows=1), 0))
    except RemoteProtocolError:
        return


@given(st.binary(min_size=32, max_size=300))
def test_a_hop_survives_a_segment_of_any_bytes(data: bytes) -> None:
    """Its lengths have been checked before, but not its options."""
    segment = bytearray(data)
    segment[24:32] = struct.pack("<HHI", 1, TRACED, max(0, len(data) - 36))
    stamp_departure([segment])
    assert len(segment) == len(data)
