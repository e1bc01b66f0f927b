"""The pinned bytes of a segment with traced rows."""

from __future__ import annotations

from pathlib import Path

from heron.ipc.frames.frame import OptionTag, parse_segment
from heron.ipc.frames.trace_field import TraceEntry, is_traced, parse_trace, stamp_departure
from heron.spi.tracing import Stamp, StampKind

GOLDEN = Path(__file__).parent / "golden" / "segment-traced.bin"
FIRST_WALL_NS = 1_700_000_000_000_000_000


def test_the_pinned_segment_is_read() -> None:
    """The flag, the times of four hops, and two rows; other options follow."""
    data = GOLDEN.read_bytes()
    head = parse_segment(data, 0)
    field = parse_trace(head)
    assert field is not None
    assert is_traced(data)
    assert (head.rows, set(head.options)) == (3, {OptionTag.TRACE, OptionTag.BATCH_KEY})
    assert field.entries == (TraceEntry(0xAB, 0xCD, 0, 255, 900), TraceEntry(0xEF, 0x12, 2, 7, 950))
    kinds = (StampKind.FLUSHED, StampKind.SENT, StampKind.ROUTED, StampKind.FORWARDED)
    assert field.stamps == tuple(
        Stamp(kind, 0xC10C, 1000 + place, FIRST_WALL_NS + place) for place, kind in enumerate(kinds)
    )


def test_a_hop_changes_only_its_own_slot() -> None:
    """The fourth time is that of the departure from the first stream manager."""
    before = GOLDEN.read_bytes()
    segment = bytearray(before)
    stamp_departure([segment])
    slot = 32 + 4 + 8 + 3 * 24
    assert bytes(segment[:slot]) + bytes(segment[slot + 24 :]) == before[:slot] + before[slot + 24 :]
    assert segment[slot : slot + 24] != before[slot : slot + 24]
