"""Acks on the wire where arrays are needed; see `heron.ipc.tracking`. The only part of the wire that needs numpy."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heron.errors import RemoteProtocolError
from heron.ipc.edge_key import U64, edge_keys_of_range
from heron.ipc.frame import SegmentHead, SegmentKind
from heron.ipc.tracking import (
    COUNTER_BITS,
    DERIVED,
    LISTED,
    MAX_DERIVED_ROWS,
    RANGE,
    Outcome,
    expect_counters,
    expect_length,
    tracking_segment,
)

__all__ = [
    "AckBatch",
    "NewRoots",
    "acks",
    "fails",
    "new_roots_listed",
    "parse_ack",
    "parse_fail",
    "parse_new_roots",
    "settled",
    "words_of",
]

_COUNTER_MASK = np.uint64((1 << COUNTER_BITS) - 1)
_TASK_SHIFT = np.uint64(COUNTER_BITS)
_BASE = struct.Struct("<Q")
_SIZE = 8

Counters = NDArray[np.int64]


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


def new_roots_listed(task_id: int, base: int, xors: U64) -> bytes:
    """Roots whose copies differ."""
    return tracking_segment(task_id, SegmentKind.ROOTS, LISTED, len(xors), _BASE.pack(base) + xors.tobytes())


def parse_new_roots(data: bytes, head: SegmentHead) -> NewRoots:
    """The roots of a ROOTS segment.

    Raises:
        RemoteProtocolError: when its length does not fit, here and below.
    """
    payload = memoryview(data)[head.payload_start : head.end]
    if head.encoding == LISTED:
        expect_length(len(payload) == _SIZE * (head.rows + 1), head)
        return NewRoots(_counter(_BASE.unpack_from(payload)[0], head), words_of(payload[_SIZE:]))
    expect_length(len(payload) >= RANGE.size, head)
    base, batch_key, count, rows = RANGE.unpack_from(payload)
    expect_length(rows == head.rows and len(payload) == RANGE.size + 4 * count, head)
    _expect_few(head)
    xors = np.zeros(rows, dtype=np.uint64)
    for task_id in struct.unpack_from(f"<{count}I", payload, RANGE.size):
        xors ^= edge_keys_of_range(batch_key, rows, task_id)
    return NewRoots(_counter(base, head), xors)


def acks(roots: U64, xors: U64) -> Iterator[bytes]:
    """Acks as pairs, a segment per task of the roots."""
    for task_id, chosen in _by_task(roots):
        counters = roots[chosen] & _COUNTER_MASK
        payload = counters.tobytes() + xors[chosen].tobytes()
        yield tracking_segment(task_id, SegmentKind.ACK, LISTED, len(counters), payload)


def parse_ack(data: bytes, head: SegmentHead) -> AckBatch:
    """The acks of an ACK segment."""
    payload = memoryview(data)[head.payload_start : head.end]
    if head.encoding == LISTED:
        expect_length(len(payload) == 2 * _SIZE * head.rows, head)
        middle = _SIZE * head.rows
        return AckBatch(0, words_of(payload[:middle]).view(np.int64), words_of(payload[middle:]))
    expect_length(len(payload) == RANGE.size, head)
    base, batch_key, task_id, rows = RANGE.unpack_from(payload)
    expect_length(rows == head.rows, head)
    _expect_few(head)
    return AckBatch(_counter(base, head), None, edge_keys_of_range(batch_key, rows, task_id))


def fails(roots: U64) -> Iterator[bytes]:
    """Fails, a segment per task of the roots."""
    for task_id, chosen in _by_task(roots):
        counters = roots[chosen] & _COUNTER_MASK
        yield tracking_segment(task_id, SegmentKind.FAIL, LISTED, len(counters), counters.tobytes())


def parse_fail(data: bytes, head: SegmentHead) -> Counters:
    """The roots of a FAIL segment."""
    payload = memoryview(data)[head.payload_start : head.end]
    expect_length(len(payload) == _SIZE * head.rows, head)
    return words_of(payload).view(np.int64)


def words_of(data: bytes | memoryview) -> U64:
    """The u64 that these bytes are, as a copy: segments stand at any byte, and numpy is slow with unaligned words.

    The XOR of 1,000 acks took 34 microseconds instead of 6 (measured); and a view would keep the whole frame.
    """
    return np.frombuffer(data, "<u8").copy()


def settled(task_id: int, outcome: Outcome, roots: Counters) -> bytes:
    """What became of a task's roots, in the order in which it became so."""
    count = len(roots)
    first = int(roots[0])
    if int(roots[-1]) - first + 1 == count and bool((np.diff(roots) == 1).all()):
        payload, encoding = _BASE.pack(first), DERIVED
    else:
        payload, encoding = roots.astype("<i8", copy=False).tobytes(), LISTED
    return tracking_segment(task_id, SegmentKind.SETTLED, encoding, count, payload, stream=outcome)


def _counter(base: int, head: SegmentHead) -> int:
    expect_counters(base, head)
    return base


def _expect_few(head: SegmentHead) -> None:
    if head.rows > MAX_DERIVED_ROWS:
        msg = f"segment of kind {head.kind} derives {head.rows} roots; more than {MAX_DERIVED_ROWS} must be listed"
        raise RemoteProtocolError(msg)


def _by_task(roots: U64) -> Iterator[tuple[int, NDArray[np.bool_] | slice]]:
    if len(roots) == 0:
        return
    tasks = roots >> _TASK_SHIFT
    changes = np.flatnonzero(tasks[1:] != tasks[:-1])
    if len(changes) == 0:
        yield int(tasks[0]), slice(None)
        return
    for task_id in sorted({int(tasks[0]), *tasks[changes + 1].tolist()}):  # they come in long runs
        yield task_id, tasks == np.uint64(task_id)
