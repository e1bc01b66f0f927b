"""The trace option of a segment: which of its rows are traced, and the times that each hop has written. WIRE.md has it.

A segment with the option has a flag in its head, and its frame has one too, so that a hop looks at one byte of an
untraced frame. The option is the first one, and a hop writes its time into a slot of it without changing its size. In
the memory of a hop such a segment is a bytearray, and no other segment is one.
"""

from __future__ import annotations

import functools
import struct
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from heron.clock import monotonic_ns, wall_ns
from heron.errors import RemoteProtocolError
from heron.ipc.frames.frame import SEGMENT_HEADER_BYTES, OptionTag, SegmentHead, option
from heron.spi.tracing import Stamp, StampKind

__all__ = [
    "MOST_ENTRIES",
    "SLOTS",
    "TRACED",
    "TraceEntry",
    "TraceField",
    "frame_is_traced",
    "is_traced",
    "parse_trace",
    "stamp_departure",
    "stamp_now",
    "stamp_sent",
    "trace_option",
    "traced_copy",
    "traced_segment",
]

TRACED = 1
"""The flag of a frame or segment that has traced rows."""

FRAME_FLAGS_AT = 2
SEGMENT_FLAGS_AT = 26

SLOTS = (
    StampKind.FLUSHED,
    StampKind.SENT,
    StampKind.ROUTED,
    StampKind.FORWARDED,
    StampKind.PEER_ROUTED,
    StampKind.PEER_FORWARDED,
)
"""The times of the option, in their order."""

MOST_ENTRIES = 8
"""Traced rows of one segment."""

_SLOT_AT = {kind: place for place, kind in enumerate(SLOTS)}
_SLOT = struct.Struct("<IIqq")
_ENTRY = struct.Struct("<QQIIq")
_OPTION_HEADER = struct.Struct("<HHI")
_COUNT_AND_OPTIONS = struct.Struct("<HHI")
_COUNT_AT = 24
_SLOTS_BYTES = _SLOT.size * len(SLOTS)
_LATEST_NS = 2**62


@dataclass(frozen=True, slots=True)
class TraceEntry:
    """A traced row: its trace, the span that emitted it, and how many spans its execution may lead to, itself included.

    `row` is its place in the segment. `emitted_ns` is monotonic time of the clock of the flush.
    """

    trace_id: int
    parent_id: int
    row: int
    budget: int
    emitted_ns: int


@dataclass(frozen=True, slots=True)
class TraceField:
    """A trace option: traced rows in ascending order, and the times of the hops, without those that are missing."""

    entries: tuple[TraceEntry, ...]
    stamps: tuple[Stamp, ...]

    def stamps_of(self, entry: TraceEntry) -> tuple[Stamp, ...]:
        """The times of a row, its emit included."""
        flushed = self.stamps[0]
        earlier_ns = flushed.monotonic_ns - entry.emitted_ns
        emitted = Stamp(StampKind.EMITTED, flushed.clock, entry.emitted_ns, flushed.wall_ns - earlier_ns)
        return (emitted, *self.stamps)


@functools.cache
def _clock_id() -> int:
    """The clock of this host: one for each boot and time namespace, and never 0."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_bytes()
        space = str(Path("/proc/self/ns/time").readlink()).encode()
    except OSError:
        boot, space = b"", b""  # then clocks are told apart by machine and process group at least
    return zlib.crc32(boot + space) or 1


def stamp_now(kind: StampKind) -> Stamp:
    """The time now."""
    return Stamp(kind, _clock_id(), monotonic_ns(), wall_ns())


def frame_is_traced(frame: bytes) -> bool:
    """Whether a frame has traced rows, by its flag."""
    return bool(frame[FRAME_FLAGS_AT] & TRACED)


def is_traced(segment: bytes | bytearray | memoryview) -> bool:
    """Whether a segment has traced rows, by its flag."""
    return bool(segment[SEGMENT_FLAGS_AT] & TRACED)


def trace_option(entries: Sequence[TraceEntry]) -> bytes:
    """The option for these rows, flushed now. Its size is a multiple of 8 bytes."""
    flushed = stamp_now(StampKind.FLUSHED)
    slots = bytearray(_SLOTS_BYTES)
    _SLOT.pack_into(slots, 0, flushed.clock, 0, flushed.monotonic_ns, flushed.wall_ns)
    rows = [
        _ENTRY.pack(each.trace_id, each.parent_id, each.row, each.budget, each.emitted_ns)
        for each in entries[:MOST_ENTRIES]
    ]
    return option(OptionTag.TRACE, b"".join((slots, *rows)))


def traced_segment(segment: bytes) -> bytes:
    """A segment whose first option is the trace option, with its flag; a bytearray, so that hops can write into it."""
    made = bytearray(segment)
    made[SEGMENT_FLAGS_AT] |= TRACED
    return cast("bytes", made)


def traced_copy(data: bytes, start: int, end: int, kind: StampKind) -> bytearray | None:
    """The segment of a frame, stamped, if it has traced rows."""
    if not data[start + SEGMENT_FLAGS_AT] & TRACED:
        return None
    copy = bytearray(memoryview(data)[start:end])
    _write(copy, kind)
    return copy


def stamp_sent(segments: Iterable[bytes | bytearray]) -> int:
    """Writes the time now, when the gateway of the emitting task sends them; returns the flags of their frame."""
    flags = 0
    for each in segments:
        if isinstance(each, bytearray):
            flags = TRACED
            _write(each, StampKind.SENT)
    return flags


def stamp_departure(segments: Iterable[bytes | bytearray | memoryview]) -> int:
    """Writes the time now, when a stream manager sends them; returns the flags of their frame."""
    flags = 0
    for each in segments:
        if isinstance(each, bytearray):
            flags = TRACED
            _write(each, None)
    return flags


def _write(segment: bytearray, kind: StampKind | None) -> None:
    """Writes the time now; None: of the departure from the stream manager that has written the last time.

    A segment whose option cannot be read stays as it is: the task that receives it counts it.
    """
    count, _, option_bytes = _COUNT_AND_OPTIONS.unpack_from(segment, _COUNT_AT)
    at = SEGMENT_HEADER_BYTES + 4 * count
    if option_bytes < _OPTION_HEADER.size or at + option_bytes > len(segment):
        return
    tag, _, size = _OPTION_HEADER.unpack_from(segment, at)
    if tag != OptionTag.TRACE or not _SLOTS_BYTES <= size <= option_bytes - _OPTION_HEADER.size:
        return
    slots = at + _OPTION_HEADER.size
    if kind is None:
        came_from_peer = _SLOT.unpack_from(segment, slots + _SLOT.size * _SLOT_AT[StampKind.PEER_ROUTED])[0]
        kind = StampKind.PEER_FORWARDED if came_from_peer else StampKind.FORWARDED
    stamp = stamp_now(kind)
    _SLOT.pack_into(segment, slots + _SLOT.size * _SLOT_AT[kind], stamp.clock, 0, stamp.monotonic_ns, stamp.wall_ns)


def parse_trace(head: SegmentHead) -> TraceField | None:
    """The trace option of a segment; None if it has none.

    Raises:
        RemoteProtocolError: when the option has another size, a row that the segment does not have, or an impossible
            time. The rows themselves are not affected.
    """
    value = head.options.get(OptionTag.TRACE)
    if value is None:
        return None
    count, rest = divmod(len(value) - _SLOTS_BYTES, _ENTRY.size)
    if rest or not 1 <= count <= MOST_ENTRIES:
        msg = f"trace option of {len(value)} bytes, not of 1 to {MOST_ENTRIES} rows"
        raise RemoteProtocolError(msg)
    stamps = []
    for kind in SLOTS:
        clock, _, at_ns, on_ns = _SLOT.unpack_from(value, _SLOT.size * _SLOT_AT[kind])
        if clock:
            stamps.append(Stamp(kind, clock, at_ns, on_ns))
    entries = tuple(
        [TraceEntry(*_ENTRY.unpack_from(value, _SLOTS_BYTES + _ENTRY.size * place)) for place in range(count)]
    )
    times = [time_ns for each in stamps for time_ns in (each.monotonic_ns, each.wall_ns)]
    times += [each.emitted_ns for each in entries]
    if not stamps or stamps[0].kind is not StampKind.FLUSHED or not all(0 <= each < _LATEST_NS for each in times):
        msg = f"trace option of {len(value)} bytes has no time of the flush, or an impossible time"
        raise RemoteProtocolError(msg)
    if any(each.row >= head.rows or not each.trace_id for each in entries):
        msg = f"trace option names a row that is not among the {head.rows} rows of its segment"
        raise RemoteProtocolError(msg)
    return TraceField(tuple(sorted(entries, key=lambda each: each.row)), tuple(stamps))
