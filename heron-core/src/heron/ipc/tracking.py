"""Acks on the wire: roots, their keys, and what became of them. WIRE.md describes these segments.

A root is 64 bits: the task that made it in the upper 16, that task's counter in the lower 48. What is derived is sent as
what it is derived from: a batch of one destination that is acked whole is 28 bytes, whatever its size. Else arrays
travel as raw little-endian, never an element at a time.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heron.errors import RemoteProtocolError
from heron.ipc.edge_key import U64, edge_keys_of_range
from heron.ipc.frame import SegmentHead, SegmentKind, segment

__all__ = [
    "COUNTER_BITS",
    "MAX_ROOT_TASK",
    "AckBatch",
    "NewRoots",
    "Outcome",
    "ack_range",
    "acks",
    "fails",
    "new_roots_derived",
    "new_roots_listed",
    "parse_ack",
    "parse_fail",
    "parse_new_roots",
    "parse_settled",
    "settled",
]

COUNTER_BITS = 48
MAX_ROOT_TASK = 0xFFFF
_COUNTER_MASK = np.uint64((1 << COUNTER_BITS) - 1)
_TASK_SHIFT = np.uint64(COUNTER_BITS)

_DERIVED, _LISTED = 0, 1  # the segment's encoding field
_RANGE = struct.Struct("<QQIQ")
_BASE = struct.Struct("<Q")
_SIZE = 8

Counters = NDArray[np.int64]


class Outcome(enum.IntEnum):
    """What became of roots; the stream field of a SETTLED segment."""

    COMPLETE = 0
    FAILED = 1
    EXPIRED = 2
    LOST = 3


@dataclass(frozen=True, slots=True)
class NewRoots:
    """Roots base, base+1, … with the XOR of the keys of each one's copies."""

    base: int
    xors: U64


@dataclass(frozen=True, slots=True)
class AckBatch:
    """Acks of one task's roots: `base` for consecutive ones, else `roots`."""

    base: int
    roots: Counters | None
    xors: U64


def new_roots_derived(task_id: int, base: int, batch_key: int, rows: int, tasks: Sequence[int]) -> bytes:
    """Roots of rows that every one of `tasks` gets whole."""
    payload = _RANGE.pack(base, batch_key, len(tasks), rows) + struct.pack(f"<{len(tasks)}I", *tasks)
    return _segment(task_id, SegmentKind.ROOTS, _DERIVED, rows, payload)


def new_roots_listed(task_id: int, base: int, xors: U64) -> bytes:
    """Roots whose copies differ."""
    return _segment(task_id, SegmentKind.ROOTS, _LISTED, len(xors), _BASE.pack(base) + xors.tobytes())


def parse_new_roots(data: bytes, head: SegmentHead) -> NewRoots:
    """The roots of a ROOTS segment.

    Raises:
        RemoteProtocolError: when its length does not fit, here and below.
    """
    payload = memoryview(data)[head.payload_start : head.end]
    if head.encoding == _LISTED:
        _expect(len(payload) == _SIZE * (head.rows + 1), head)
        return NewRoots(_BASE.unpack_from(payload)[0], np.frombuffer(payload, "<u8", head.rows, _SIZE))
    _expect(len(payload) >= _RANGE.size, head)
    base, batch_key, count, rows = _RANGE.unpack_from(payload)
    _expect(rows == head.rows and len(payload) == _RANGE.size + 4 * count, head)
    xors = np.zeros(rows, dtype=np.uint64)
    for task_id in struct.unpack_from(f"<{count}I", payload, _RANGE.size):
        xors ^= edge_keys_of_range(batch_key, rows, task_id)
    return NewRoots(base, xors)


def ack_range(root_base: int, batch_key: int, task_id: int, rows: int) -> bytes:
    """A batch acked whole by its one task: row n has the root ``root_base + n``."""
    task, base = root_base >> COUNTER_BITS, root_base & int(_COUNTER_MASK)
    return _segment(task, SegmentKind.ACK, _DERIVED, rows, _RANGE.pack(base, batch_key, task_id, rows))


def acks(roots: U64, xors: U64) -> Iterator[bytes]:
    """Acks as pairs, a segment per task of the roots."""
    for task_id, chosen in _by_task(roots):
        counters = roots[chosen] & _COUNTER_MASK
        payload = counters.tobytes() + xors[chosen].tobytes()
        yield _segment(task_id, SegmentKind.ACK, _LISTED, len(counters), payload)


def parse_ack(data: bytes, head: SegmentHead) -> AckBatch:
    """The acks of an ACK segment."""
    payload = memoryview(data)[head.payload_start : head.end]
    if head.encoding == _LISTED:
        _expect(len(payload) == 2 * _SIZE * head.rows, head)
        roots = np.frombuffer(payload, "<i8", head.rows)
        return AckBatch(0, roots, np.frombuffer(payload, "<u8", head.rows, _SIZE * head.rows))
    _expect(len(payload) == _RANGE.size, head)
    base, batch_key, task_id, rows = _RANGE.unpack_from(payload)
    _expect(rows == head.rows, head)
    return AckBatch(base, None, edge_keys_of_range(batch_key, rows, task_id))


def fails(roots: U64) -> Iterator[bytes]:
    """Fails, a segment per task of the roots."""
    for task_id, chosen in _by_task(roots):
        counters = roots[chosen] & _COUNTER_MASK
        yield _segment(task_id, SegmentKind.FAIL, _LISTED, len(counters), counters.tobytes())


def parse_fail(data: bytes, head: SegmentHead) -> Counters:
    """The roots of a FAIL segment."""
    payload = memoryview(data)[head.payload_start : head.end]
    _expect(len(payload) == _SIZE * head.rows, head)
    return np.frombuffer(payload, "<i8", head.rows)


def settled(task_id: int, outcome: Outcome, roots: Counters) -> bytes:
    """What became of a task's roots, in the order in which it became so."""
    count = len(roots)
    first = int(roots[0])
    if int(roots[-1]) - first + 1 == count and bool((np.diff(roots) == 1).all()):
        payload, encoding = _BASE.pack(first), _DERIVED
    else:
        payload, encoding = roots.astype("<i8", copy=False).tobytes(), _LISTED
    return _segment(task_id, SegmentKind.SETTLED, encoding, count, payload, stream=outcome)


def parse_settled(data: bytes, head: SegmentHead) -> tuple[Outcome, range | list[int]]:
    """The outcome and the roots' counters of a SETTLED segment."""
    payload = memoryview(data)[head.payload_start : head.end]
    try:
        outcome = Outcome(head.stream)
    except ValueError:
        msg = f"settled roots with unknown outcome {head.stream}"
        raise RemoteProtocolError(msg) from None
    if head.encoding == _DERIVED:
        _expect(len(payload) == _SIZE, head)
        first: int = _BASE.unpack_from(payload)[0]
        return outcome, range(first, first + head.rows)
    _expect(len(payload) == _SIZE * head.rows, head)
    return outcome, np.frombuffer(payload, "<i8", head.rows).tolist()


def _by_task(roots: U64) -> Iterator[tuple[int, NDArray[np.bool_] | slice]]:
    if len(roots) == 0:
        return
    tasks = roots >> _TASK_SHIFT
    if bool((tasks == tasks[0]).all()):
        yield int(tasks[0]), slice(None)
        return
    for task_id in np.unique(tasks).tolist():
        yield task_id, tasks == np.uint64(task_id)


def _segment(task_id: int, kind: int, encoding: int, rows: int, payload: bytes, stream: int = 0) -> bytes:
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


def _expect(holds: bool, head: SegmentHead) -> None:
    if not holds:
        msg = f"segment of kind {head.kind} for {head.rows} roots has a payload of another length"
        raise RemoteProtocolError(msg)
