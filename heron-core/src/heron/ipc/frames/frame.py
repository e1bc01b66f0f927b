"""Frames and segments: the bytes that carry tuples. WIRE.md describes them for other languages.

A frame is one ZeroMQ message: a link header, then segments. The link header belongs to one hop, and each hop writes
another one. A segment travels unchanged from the instance that made it to every task that it is addressed to, and a
stream manager reads only its head. All numbers are little-endian.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from heron.errors import LimitExceededError, RemoteProtocolError, Violation
from heron.spi.serializer import Encoding

__all__ = [
    "FRAME_HEADER_BYTES",
    "MOST_DESTINATIONS",
    "MOST_ROWS",
    "SEGMENT_HEADER_BYTES",
    "SEGMENT_KIND_AT",
    "WIRE_VERSION",
    "Encoding",
    "FrameKind",
    "Marker",
    "OptionTag",
    "SegmentHead",
    "SegmentKind",
    "aligned_options",
    "credit_body",
    "destination_lists",
    "frame_header",
    "kept_option",
    "kept_probability",
    "marker_segment",
    "marker_value",
    "option",
    "parse_credit",
    "parse_frame_header",
    "parse_segment",
    "retargeted",
    "segment",
    "segment_plan",
    "segment_routes",
    "tuple_rows",
]

WIRE_VERSION = 1

_FRAME = struct.Struct("<BBHIQ")
_SEGMENT = struct.Struct("<IBBHIIIIHHI")
_OPTION = struct.Struct("<HHI")
_CREDIT = struct.Struct("<IQ")
_ROUTE = struct.Struct("<I20xHHI")
_ROUTE_LENGTH = struct.Struct("<I")
_ROUTE_COUNT = struct.Struct("<H")
_MARKER_VALUE = struct.Struct("<q")
_PROBABILITY = struct.Struct("<d")
_PLAN_AT = 8
_ROWS_AT = 20
_COUNT_AT = 24
_MOST = 0xFFFFFFFF  # of a length or a number of rows

FRAME_HEADER_BYTES = _FRAME.size
SEGMENT_HEADER_BYTES = _SEGMENT.size

MOST_ROWS = 1 << 20
"""The most rows of a segment of tuples: a row without values takes no bytes, but a receiver makes an object of it."""

MOST_DESTINATIONS = 0xFFFF
"""The most destinations of a segment; `destination_lists` divides more among several segments."""

SEGMENT_KIND_AT = 4
"""The offset of the byte of a segment that holds its kind."""


class FrameKind(enum.IntEnum):
    """The kind of a frame: what follows the link header."""

    DATA = 1  # segments; they need credit
    CONTROL = 2  # one protobuf Envelope
    CREDIT = 3  # the total of released bytes
    ACK = 4  # segments about roots; they need no credit


class SegmentKind(enum.IntEnum):
    """The kind of a segment."""

    TUPLES = 1
    MARKER = 2
    ROOTS = 3  # emitting task -> its stream manager: roots and the XOR of the keys of their copies
    ACK = 4  # consumer -> the stream manager of the roots' task
    FAIL = 5  # consumer -> the stream manager of the roots' task
    SETTLED = 6  # stream manager of the roots' task -> that task: complete, failed, expired or lost
    CAUSE = 7  # consumer -> the roots' task, in front of FAIL: why it failed the roots; only if the spout replays


class OptionTag(enum.IntEnum):
    """Optional fields of a segment; a reader skips unknown tags."""

    ROOTS = 1  # u64 per row
    KEYS = 2  # u64 per row
    EVENT_TIMES = 3  # i64 microseconds since the epoch per row
    BATCH_KEY = 4  # u64
    ROOT_BASE = 5  # u64: the root of row number 0 of the batch; row n has root base + n
    ROW_NUMBERS = 6  # u64 per row: its number in the batch, if that is not its place in the segment
    ROOT_ROWS = 7  # u64 per entry of ROOTS: its row, unless each row has one root, in order
    UNIT = 8  # empty: to the fields above, all rows of the segment are one row, number 0
    PADDING = 9  # any bytes: they place the payload
    TRACE = 10  # which rows are traced, and the times of the hops; see heron.ipc.frames.trace_field
    KEPT = 11  # f64: the probability with which each row was kept; without it, nothing was shed


_TUPLES_BYTE = bytes((SegmentKind.TUPLES,))
_FIRST_KIND, _LAST_KIND = int(min(FrameKind)), int(max(FrameKind))


class Marker(enum.IntEnum):
    """Markers in the stream, in order behind the data of the same source task."""

    END = 1
    PLAN = 2
    CHECKPOINT = 3
    WATERMARK = 4
    IDLE = 5  # a watermark of a task that has no data now


@dataclass(frozen=True, slots=True)
class SegmentHead:
    """The head of a segment; its payload is ``data[payload_start:end]``."""

    kind: int
    encoding: int
    stream: int
    plan_version: int
    source_task: int
    incarnation: int
    rows: int
    destinations: tuple[int, ...]
    options: dict[int, memoryview]
    payload_start: int
    end: int


def frame_header(kind: int, session: int, sequence: int, flags: int = 0) -> bytes:
    """The 16 bytes at the start of a frame."""
    return _FRAME.pack(WIRE_VERSION, kind, flags, session, sequence)


def parse_frame_header(data: bytes | memoryview) -> tuple[int, int, int]:
    """``(kind, session, sequence)`` of a frame.

    Raises:
        RemoteProtocolError: when the frame is too short, has another wire version, or an unknown kind.
    """
    if len(data) < FRAME_HEADER_BYTES:
        msg = f"frame of {len(data)} bytes is shorter than its header, {FRAME_HEADER_BYTES} bytes"
        raise RemoteProtocolError(msg, Violation.VERSION)
    version, kind, _, session, sequence = _FRAME.unpack_from(data)
    if version != WIRE_VERSION:
        msg = f"frame has wire version {version}, this process has {WIRE_VERSION}"
        raise RemoteProtocolError(msg, Violation.VERSION)
    if not _FIRST_KIND <= kind <= _LAST_KIND:
        msg = f"frame of kind {kind}, which is unknown; this process knows kinds {_FIRST_KIND} to {_LAST_KIND}"
        raise RemoteProtocolError(msg, Violation.KIND)
    return kind, session, sequence


def segment(  # noqa: PLR0913  # one for each field of the head
    destinations: Sequence[int],
    payload: bytes,
    *,
    kind: int,
    encoding: int,
    stream: int,
    plan_version: int,
    source_task: int,
    incarnation: int,
    rows: int,
    options: bytes = b"",
) -> bytes:
    """One segment as bytes; `options` are encoded optional fields (see `option`).

    Raises:
        LimitExceededError: when it has more destinations, rows or bytes than the fields of its head can hold.
    """
    count = len(destinations)
    length = SEGMENT_HEADER_BYTES + 4 * count + len(options) + len(payload)
    if count > MOST_DESTINATIONS or length > _MOST or rows > _MOST:
        msg = (
            f"segment of task {source_task} with {count} destinations, {rows} rows and {length} bytes exceeds its "
            f"limits: {MOST_DESTINATIONS} destinations, {_MOST} rows and {_MOST} bytes; divide it"
        )
        raise LimitExceededError(msg)
    head = _SEGMENT.pack(
        length, kind, encoding, stream, plan_version, source_task, incarnation, rows, count, 0, len(options)
    )
    return b"".join((head, struct.pack(f"<{count}I", *destinations), options, payload))


def destination_lists(destinations: Sequence[int]) -> Sequence[Sequence[int]]:
    """The destinations in lists that each fit into a segment; normally one list."""
    if len(destinations) <= MOST_DESTINATIONS:
        return (destinations,)
    return [destinations[at : at + MOST_DESTINATIONS] for at in range(0, len(destinations), MOST_DESTINATIONS)]


def option(tag: int, value: bytes) -> bytes:
    """One optional field as bytes."""
    return _OPTION.pack(tag, 0, len(value)) + value


def kept_option(probability: float) -> bytes:
    """The option of rows that were kept with this probability; empty for 1."""
    return option(OptionTag.KEPT, _PROBABILITY.pack(probability)) if probability < 1.0 else b""


def kept_probability(head: SegmentHead) -> float:
    """The probability with which each row of a segment was kept.

    Raises:
        RemoteProtocolError: when it is not above 0 and at most 1.
    """
    field = head.options.get(OptionTag.KEPT)
    if field is None:
        return 1.0
    probability: float = _PROBABILITY.unpack(field)[0] if len(field) == _PROBABILITY.size else 0.0
    if not 0.0 < probability <= 1.0:
        msg = f"segment of task {head.source_task}: its rows were kept with an impossible probability, {probability!r}"
        raise RemoteProtocolError(msg)
    return probability


def aligned_options(destinations: Sequence[int], options: bytes) -> bytes:
    """The options with a padding that starts the payload at a multiple of 8 bytes within its segment.

    A reader of columns then finds them aligned in the frame, unless segments of another length are in front of it.
    """
    missing = -(4 * len(destinations) + len(options)) % 8
    return options + option(OptionTag.PADDING, bytes(missing)) if missing else options


def retargeted(source: bytes | bytearray | memoryview, destinations: Sequence[int]) -> bytes | bytearray | memoryview:
    """The segment addressed to `destinations`; the same object if it is addressed to them already."""
    view = memoryview(source)
    length, count, _, _ = _ROUTE.unpack_from(view)
    at = SEGMENT_HEADER_BYTES
    if struct.unpack_from(f"<{count}I", view, at) == tuple(destinations):
        return source
    head = bytearray(view[:at])
    _ROUTE_LENGTH.pack_into(head, 0, length + 4 * (len(destinations) - count))
    _ROUTE_COUNT.pack_into(head, _COUNT_AT, len(destinations))
    return b"".join((head, struct.pack(f"<{len(destinations)}I", *destinations), view[at + 4 * count :]))


def marker_segment(
    destinations: Sequence[int], marker: Marker, value: int, *, plan_version: int, source_task: int, incarnation: int
) -> bytes:
    """A marker from a task to tasks; `value` is a plan version, checkpoint id or time, and 0 for END."""
    return segment(
        destinations,
        _MARKER_VALUE.pack(value),
        kind=SegmentKind.MARKER,
        encoding=Encoding.NONE,
        stream=marker,
        plan_version=plan_version,
        source_task=source_task,
        incarnation=incarnation,
        rows=0,
    )


def marker_value(data: bytes | memoryview, head: SegmentHead) -> int:
    """The value of a marker.

    Raises:
        RemoteProtocolError: when it has another length.
    """
    if head.end - head.payload_start != _MARKER_VALUE.size:
        msg = f"marker of task {head.source_task} has a value of {head.end - head.payload_start} bytes"
        raise RemoteProtocolError(msg)
    value: int = _MARKER_VALUE.unpack_from(data, head.payload_start)[0]
    return value


def segment_routes(
    data: bytes | memoryview, start: int = FRAME_HEADER_BYTES
) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    """``(start, end, destinations)`` of each segment of a frame: the part that a stream manager reads.

    Raises:
        RemoteProtocolError: when a segment does not fit into its frame.
    """
    size = len(data)
    while start < size:
        if size - start < SEGMENT_HEADER_BYTES:
            msg = f"frame ends within a segment's header, at byte {size}"
            raise RemoteProtocolError(msg)
        length, count, _, options = _ROUTE.unpack_from(data, start)
        if length < SEGMENT_HEADER_BYTES + 4 * count + options or length > size - start:
            msg = f"segment of {length} bytes at byte {start} does not fit a frame of {size} bytes"
            raise RemoteProtocolError(msg)
        at = start + SEGMENT_HEADER_BYTES
        if count == 1:
            destinations: tuple[int, ...] = (int.from_bytes(data[at : at + 4], "little"),)
        else:
            destinations = struct.unpack_from(f"<{count}I", data, at)
        yield start, start + length, destinations
        start += length


def parse_segment(data: bytes | bytearray | memoryview, start: int) -> SegmentHead:
    """The head of the segment at `start`, with its optional fields; `segment_routes` must have checked the sizes.

    Raises:
        RemoteProtocolError: when an optional field does not fit, or the segment has too many tuples.
    """
    view = memoryview(data)
    (length, kind, encoding, stream, plan_version, source_task, incarnation, rows, count, _, option_bytes) = (
        _SEGMENT.unpack_from(view, start)
    )
    if rows > MOST_ROWS and kind == SegmentKind.TUPLES:
        msg = f"segment of task {source_task} with {rows} tuples exceeds the limit of {MOST_ROWS} tuples"
        raise RemoteProtocolError(msg, Violation.SIZE)
    at = start + SEGMENT_HEADER_BYTES
    destinations = struct.unpack_from(f"<{count}I", view, at)
    at += 4 * count
    payload_start = at + option_bytes
    options: dict[int, memoryview] = {}
    while at < payload_start:
        if payload_start - at < _OPTION.size:
            msg = f"optional fields end within a field's header, at byte {payload_start}"
            raise RemoteProtocolError(msg)
        tag, _, size = _OPTION.unpack_from(view, at)
        at += _OPTION.size
        if size > payload_start - at:
            msg = f"optional field {tag} of {size} bytes exceeds its segment"
            raise RemoteProtocolError(msg)
        options[tag] = view[at : at + size]
        at += size
    return SegmentHead(
        kind,
        encoding,
        stream,
        plan_version,
        source_task,
        incarnation,
        rows,
        destinations,
        options,
        payload_start,
        start + length,
    )


def segment_plan(data: bytes | bytearray | memoryview) -> int:
    """The plan version of the segment that begins with `data`."""
    return int.from_bytes(data[_PLAN_AT : _PLAN_AT + 4], "little")


def tuple_rows(segments: Iterable[bytes | bytearray | memoryview]) -> int:
    """The number of tuples in these segments; markers and segments about roots have none."""
    return sum(
        int.from_bytes(each[_ROWS_AT : _ROWS_AT + 4], "little")
        for each in segments
        if each[SEGMENT_KIND_AT : SEGMENT_KIND_AT + 1] == _TUPLES_BYTE
    )


def credit_body(task_id: int, released_bytes: int) -> bytes:
    """The body of a CREDIT frame: the task (0: the whole link), and the total of bytes released."""
    return _CREDIT.pack(task_id, released_bytes)


def parse_credit(data: bytes) -> tuple[int, int]:
    """``(task id, released bytes)`` of a CREDIT frame.

    Raises:
        RemoteProtocolError: when the frame has a wrong length.
    """
    if len(data) != FRAME_HEADER_BYTES + _CREDIT.size:
        msg = f"credit frame of {len(data)} bytes, not {FRAME_HEADER_BYTES + _CREDIT.size} bytes"
        raise RemoteProtocolError(msg)
    task_id, released = _CREDIT.unpack_from(data, FRAME_HEADER_BYTES)
    return task_id, released
