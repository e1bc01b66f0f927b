"""Acks on the wire, as far as no arrays are needed: the usual case. WIRE.md describes these segments.

A root is 64 bits: the task that made it in the upper 16, that task's counter in the lower 48. What is derived is sent
as what it is derived from: a batch of one destination that is acked whole is 28 bytes, whatever its size. Else arrays
travel as raw little-endian, never an element at a time; those are `heron.ipc.tracking_arrays`, which needs numpy.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Sequence

from heron.errors import RemoteProtocolError
from heron.ipc.frame import SegmentHead, SegmentKind, segment

__all__ = [
    "COUNTER_BITS",
    "DERIVED",
    "LISTED",
    "MAX_DERIVED_ROWS",
    "MAX_ROOT_TASK",
    "RANGE",
    "RootOutcome",
    "ack_range",
    "expect_counters",
    "expect_length",
    "new_roots_derived",
    "parse_settled",
    "tracking_segment",
]

COUNTER_BITS = 48
MAX_ROOT_TASK = 0xFFFF
MAX_DERIVED_ROWS = 1 << 20  # of what a few bytes stand for; more are listed: its receiver makes arrays of so many
_COUNTER_MASK = (1 << COUNTER_BITS) - 1

DERIVED, LISTED = 0, 1
"""The encoding field of a segment about roots: the payload gives what its arrays derive from, or the arrays."""

RANGE = struct.Struct("<QQIQ")
"""First counter, batch key, a task or how many tasks follow, rows."""

_SIZE = 8


class RootOutcome(enum.IntEnum):
    """What became of roots; the stream field of a SETTLED segment."""

    COMPLETE = 0
    FAILED = 1
    EXPIRED = 2
    LOST = 3


def new_roots_derived(task_id: int, base: int, batch_key: int, rows: int, tasks: Sequence[int]) -> bytes:
    """Roots of rows that every one of `tasks` gets whole."""
    payload = RANGE.pack(base, batch_key, len(tasks), rows) + struct.pack(f"<{len(tasks)}I", *tasks)
    return tracking_segment(task_id, SegmentKind.ROOTS, DERIVED, rows, payload)


def ack_range(root_base: int, batch_key: int, task_id: int, rows: int) -> bytes:
    """A batch acked whole by its one task: row n has the root ``root_base + n``."""
    task, base = root_base >> COUNTER_BITS, root_base & _COUNTER_MASK
    return tracking_segment(task, SegmentKind.ACK, DERIVED, rows, RANGE.pack(base, batch_key, task_id, rows))


def parse_settled(data: bytes, head: SegmentHead) -> tuple[RootOutcome, range | list[int]]:
    """The outcome and the roots' counters of a SETTLED segment.

    Raises:
        RemoteProtocolError: when its length or outcome does not fit.
    """
    payload = memoryview(data)[head.payload_start : head.end]
    try:
        outcome = RootOutcome(head.stream)
    except ValueError:
        msg = f"settled roots with unknown outcome {head.stream}"
        raise RemoteProtocolError(msg) from None
    if head.encoding == DERIVED:
        expect_length(len(payload) == _SIZE, head)
        first = int.from_bytes(payload, "little")
        expect_counters(first, head)
        return outcome, range(first, first + head.rows)
    expect_length(len(payload) == _SIZE * head.rows, head)
    return outcome, list(struct.unpack(f"<{head.rows}q", payload))


def tracking_segment(task_id: int, kind: int, encoding: int, rows: int, payload: bytes, stream: int = 0) -> bytes:
    """A segment about roots of a task."""
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


def expect_counters(first: int, head: SegmentHead) -> None:
    """Refuses counters from `first` on that do not fit into a root.

    Raises:
        RemoteProtocolError: when they do not.
    """
    if first + head.rows > 1 << COUNTER_BITS:
        msg = f"segment of kind {head.kind} for {head.rows} roots from {first} on exceeds {COUNTER_BITS} bits"
        raise RemoteProtocolError(msg)


def expect_length(holds: bool, head: SegmentHead) -> None:
    """Refuses a segment about roots whose payload has another length than its head says.

    Raises:
        RemoteProtocolError: when it does not hold.
    """
    if not holds:
        msg = f"segment of kind {head.kind} for {head.rows} roots has a payload of another length"
        raise RemoteProtocolError(msg)
