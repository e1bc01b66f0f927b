"""Acks on the wire in the usual case, in which no arrays are needed. WIRE.md describes these segments.

A root has 64 bits: its task in the upper 16, a counter of that task in the lower 48. Keys and roots that can be derived
are sent in a short form: the ack of a whole batch with one destination is 28 bytes, whatever its size. All others are
arrays of raw little-endian numbers; `heron.ipc.frames.tracking_arrays` handles them, and needs numpy.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Sequence

from heron.errors import RemoteProtocolError, Violation
from heron.ipc.frames.frame import SegmentHead, SegmentKind, segment

__all__ = [
    "COUNTER_BITS",
    "DERIVED",
    "LISTED",
    "MAX_CAUSES_BYTES",
    "MAX_CAUSE_BYTES",
    "MAX_DERIVED_KEYS",
    "MAX_DERIVED_ROWS",
    "NO_CAUSE",
    "RANGE",
    "Cause",
    "RootOutcome",
    "ack_range",
    "cause_lines",
    "expect_counters",
    "expect_length",
    "new_roots_derived",
    "parse_cause",
    "parse_settled",
    "settled_range",
    "tracking_segment",
]

COUNTER_BITS = 48
MAX_DERIVED_ROWS = 1 << 20
"""The limit of the short form. Larger batches are listed, because the receiver allocates arrays of this length."""

MAX_DERIVED_KEYS = 1 << 24
"""The limit of rows times tasks of the short form of ROOTS: the receiver computes a key for each, in 10 ns."""

MAX_CAUSE_BYTES = 16 * 1024
"""The most bytes of a line of a CAUSE segment."""

MAX_CAUSES_BYTES = 128 * 1024
"""The most bytes of all lines of a CAUSE segment."""

Cause = tuple[bytes, bytes]
"""A document that says why a root failed, and the text that completes it, in JSON; empty if the document has all."""

NO_CAUSE: Cause = (b"", b"")

_COUNTER_MASK = (1 << COUNTER_BITS) - 1

DERIVED, LISTED = 0, 1
"""The encoding field of a segment about roots: the payload is the short form, or the arrays."""

RANGE = struct.Struct("<QQIQ")
"""First counter, batch key, a task or the number of tasks that follow, rows."""

_SIZE = 8


class RootOutcome(enum.IntEnum):
    """How a root ended; the stream field of a SETTLED segment."""

    COMPLETE = 0
    FAILED = 1
    EXPIRED = 2
    LOST = 3


def new_roots_derived(task_id: int, base: int, batch_key: int, rows: int, tasks: Sequence[int]) -> bytes:
    """A ROOTS segment for rows that each of `tasks` receives."""
    payload = RANGE.pack(base, batch_key, len(tasks), rows) + struct.pack(f"<{len(tasks)}I", *tasks)
    return tracking_segment(task_id, SegmentKind.ROOTS, DERIVED, rows, payload)


def ack_range(root_base: int, batch_key: int, task_id: int, rows: int, failed: int = 0) -> bytes:
    """An ACK segment for a whole batch with one destination: row n has the root ``root_base + n``.

    The `failed` rows among them were in a FAIL in front of it.
    """
    task, base = root_base >> COUNTER_BITS, root_base & _COUNTER_MASK
    return tracking_segment(task, SegmentKind.ACK, DERIVED, rows - failed, RANGE.pack(base, batch_key, task_id, rows))


def settled_range(task_id: int, outcome: RootOutcome, first: int, count: int) -> bytes:
    """A SETTLED segment: the outcome of all of `count` consecutive roots that did not end before; at most 2 ** 20."""
    return tracking_segment(task_id, SegmentKind.SETTLED, DERIVED, count, first.to_bytes(_SIZE, "little"), outcome)


def parse_settled(data: bytes, head: SegmentHead) -> tuple[RootOutcome, range | list[int]]:
    """The outcome and the roots' counters of a SETTLED segment.

    Raises:
        RemoteProtocolError: when its length or outcome is wrong.
    """
    payload = memoryview(data)[head.payload_start : head.end]
    try:
        outcome = RootOutcome(head.stream)
    except ValueError:
        msg = f"settled roots with unknown outcome {head.stream}"
        raise RemoteProtocolError(msg) from None
    if head.encoding == DERIVED:
        expect_length(len(payload) == _SIZE, head)
        if head.rows > MAX_DERIVED_ROWS:
            msg = f"outcome of {head.rows} roots exceeds the limit of {MAX_DERIVED_ROWS} roots"
            raise RemoteProtocolError(msg, Violation.SIZE)
        first = int.from_bytes(payload, "little")
        expect_counters(first, head, head.rows)
        return outcome, range(first, first + head.rows)
    expect_length(len(payload) == _SIZE * head.rows, head)
    return outcome, list(struct.unpack(f"<{head.rows}q", payload))


def cause_lines(data: bytes, head: SegmentHead) -> list[bytes]:
    """The lines of a CAUSE segment, one for each of its counters.

    Raises:
        RemoteProtocolError: when its length, or the number or length of its lines is wrong.
    """
    start = head.payload_start + _SIZE * head.rows
    expect_length(0 <= head.end - start <= MAX_CAUSES_BYTES, head)
    lines = data[start : head.end].split(b"\n")
    expect_length(len(lines) == head.rows and max(map(len, lines)) <= MAX_CAUSE_BYTES, head)
    return lines


def parse_cause(data: bytes, head: SegmentHead) -> tuple[list[int], list[Cause]]:
    """The counters of a CAUSE segment, and the cause of each.

    Raises:
        RemoteProtocolError: as `cause_lines`.
    """
    causes: list[Cause] = []
    document = text = b""
    for line in cause_lines(data, head):
        if line[:1] == b"{":
            document, text = line, b""
        elif line:
            text = line
        causes.append((document, text))
    return list(struct.unpack_from(f"<{head.rows}q", data, head.payload_start)), causes


def tracking_segment(task_id: int, kind: int, encoding: int, rows: int, payload: bytes, stream: int = 0) -> bytes:
    """A segment about the roots of a task."""
    return segment(
        (task_id,),
        payload,
        kind=kind,
        encoding=encoding,
        stream=stream,
        plan_version=0,
        source_task=0,
        incarnation=0,
        rows=rows,
    )


def expect_counters(first: int, head: SegmentHead, rows: int) -> None:
    """Checks that `rows` counters from `first` on fit into roots.

    Raises:
        RemoteProtocolError: when they do not fit.
    """
    if first + rows > 1 << COUNTER_BITS:
        msg = f"segment of kind {head.kind} for {rows} roots from counter {first} exceeds {COUNTER_BITS} bits"
        raise RemoteProtocolError(msg)


def expect_length(holds: bool, head: SegmentHead) -> None:
    """Checks a condition on the length of the payload of a segment about roots.

    Raises:
        RemoteProtocolError: when the condition does not hold.
    """
    if not holds:
        msg = f"segment of kind {head.kind} for {head.rows} roots has a payload of a wrong length"
        raise RemoteProtocolError(msg)
