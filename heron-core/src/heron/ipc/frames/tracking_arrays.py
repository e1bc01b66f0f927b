"""Acks on the wire where arrays are needed; see `tracking`. The only part of the wire that needs numpy.

The keys of tuple copies are derived, so that neither emits nor acks carry them. The key of a copy is a 64-bit mix of
the key of its batch, its row and its destination task. Plain counters would cancel each other in the XOR of a tree (1 ^
2 ^ 3 = 0), and so would two copies of one row with the same key. Mixer: splitmix64 (Steele, Lea and Flood, OOPSLA
2014).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from heron.errors import RemoteProtocolError, Violation
from heron.ipc.frames.frame import SegmentHead, SegmentKind
from heron.ipc.frames.frame_limits import MOST_LISTED
from heron.ipc.frames.tracking import (
    COUNTER_BITS,
    LISTED,
    MAX_CAUSES_BYTES,
    MAX_DERIVED_KEYS,
    MAX_DERIVED_ROWS,
    RANGE,
    Cause,
    RootOutcome,
    expect_counters,
    expect_length,
    settled_range,
    tracking_segment,
)

__all__ = [
    "U64",
    "AckBatch",
    "NewRoots",
    "RootCounters",
    "acks",
    "edge_keys",
    "edge_keys_of_range",
    "fails",
    "new_roots_listed",
    "parse_ack",
    "parse_fail",
    "parse_new_roots",
    "row_numbers",
    "settled",
    "settled_listed",
    "words_of",
]

U64 = NDArray[np.uint64]
RootCounters = NDArray[np.int64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_TASK_STEP = 0xD1B54A32D192ED03
_MASK = 0xFFFFFFFFFFFFFFFF
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_SHIFT_30, _SHIFT_27, _SHIFT_31 = np.uint64(30), np.uint64(27), np.uint64(31)

_COUNTERS = (1 << COUNTER_BITS) - 1
_COUNTER_MASK = np.uint64(_COUNTERS)
_TASK_SHIFT = np.uint64(COUNTER_BITS)
_BASE = struct.Struct("<Q")
_SIZE = 8


def edge_keys(batch_key: int, rows: U64, task_id: int) -> U64:
    """The keys of the copies of these rows for a task."""
    z = rows * _GOLDEN
    z += np.uint64((batch_key + task_id * _TASK_STEP) & _MASK)
    z ^= z >> _SHIFT_30
    z *= _MIX_1
    z ^= z >> _SHIFT_27
    z *= _MIX_2
    z ^= z >> _SHIFT_31
    return z


def edge_keys_of_range(batch_key: int, rows: int, task_id: int) -> U64:
    """The keys of rows 0 ... rows-1."""
    return edge_keys(batch_key, row_numbers(rows), task_id)


def row_numbers(rows: int) -> U64:
    """0 ... rows-1."""
    return np.arange(rows, dtype=np.uint64)


@dataclass(frozen=True, slots=True)
class NewRoots:
    """Roots base, base+1, ... with the XOR of the keys of each root's copies."""

    base: int
    xors: U64


@dataclass(frozen=True, slots=True)
class AckBatch:
    """Acks of the roots of one task; `roots` is None for consecutive roots from `base` on.

    `acked` of these are acked; the others have failed in front of it.
    """

    base: int
    roots: RootCounters | None
    xors: U64
    acked: int


def new_roots_listed(task_id: int, base: int, xors: U64) -> list[bytes]:
    """ROOTS segments for rows whose copies differ: one, unless there are more than `MOST_LISTED` rows."""
    return [
        tracking_segment(
            task_id, SegmentKind.ROOTS, LISTED, len(xors[part]), _BASE.pack(base + part.start) + xors[part].tobytes()
        )
        for part in _slices(len(xors))
    ]


def parse_new_roots(data: bytes, head: SegmentHead) -> NewRoots:
    """The roots of a ROOTS segment.

    Raises:
        RemoteProtocolError: when the length of the payload is wrong. The functions below raise it, too.
    """
    payload = memoryview(data)[head.payload_start : head.end]
    if head.encoding == LISTED:
        expect_length(len(payload) == _SIZE * (head.rows + 1), head)
        return NewRoots(_counter(_BASE.unpack_from(payload)[0], head, head.rows), words_of(payload[_SIZE:]))
    expect_length(len(payload) >= RANGE.size, head)
    base, batch_key, count, rows = RANGE.unpack_from(payload)
    expect_length(rows == head.rows and len(payload) == RANGE.size + 4 * count, head)
    _expect_few(head, rows, count)
    xors = np.zeros(rows, dtype=np.uint64)
    for task_id in struct.unpack_from(f"<{count}I", payload, RANGE.size):
        xors ^= edge_keys_of_range(batch_key, rows, task_id)
    return NewRoots(_counter(base, head, rows), xors)


def acks(roots: U64, xors: U64) -> Iterator[bytes]:
    """ACK segments that list root and XOR of each ack: for each task of the roots, at most `MOST_LISTED` in each."""
    for task_id, chosen in _by_task(roots):
        counters, keys = roots[chosen] & _COUNTER_MASK, xors[chosen]
        for part in _slices(len(counters)):
            payload = counters[part].tobytes() + keys[part].tobytes()
            yield tracking_segment(task_id, SegmentKind.ACK, LISTED, len(counters[part]), payload)


def parse_ack(data: bytes, head: SegmentHead) -> AckBatch:
    """The acks of an ACK segment."""
    payload = memoryview(data)[head.payload_start : head.end]
    if head.encoding == LISTED:
        expect_length(len(payload) == 2 * _SIZE * head.rows, head)
        middle = _SIZE * head.rows
        return AckBatch(0, words_of(payload[:middle]).view(np.int64), words_of(payload[middle:]), head.rows)
    expect_length(len(payload) == RANGE.size, head)
    base, batch_key, task_id, rows = RANGE.unpack_from(payload)
    expect_length(rows >= head.rows, head)
    _expect_few(head, rows)
    return AckBatch(_counter(base, head, rows), None, edge_keys_of_range(batch_key, rows, task_id), head.rows)


def fails(roots: Iterable[int], why: Sequence[Cause] | None = None) -> Iterator[bytes]:
    """FAIL segments: for each task of the roots, at most `MOST_LISTED` roots in each.

    With `why`, a cause for each root, they are behind CAUSE segments. Roots that fail are few, so lists take less time
    than arrays.
    """
    for task_id, counters, places in _counters_by_task(roots):
        if why is not None:
            own = why if len(places) == len(why) else [why[place] for place in places]
            for part, lines in _causes(counters, own):
                yield _listed(task_id, SegmentKind.CAUSE, part, lines)
        for each in _slices(len(counters)):
            yield _listed(task_id, SegmentKind.FAIL, counters[each])


def parse_fail(data: bytes, head: SegmentHead) -> list[int]:
    """The roots of a FAIL segment."""
    expect_length(head.end - head.payload_start == _SIZE * head.rows, head)
    return list(struct.unpack_from(f"<{head.rows}q", data, head.payload_start))


def words_of(data: bytes | memoryview) -> U64:
    """A copy of these bytes as u64.

    Segments start at any byte, and numpy is slow with unaligned words: the XOR of 1,000 acks took 34 microseconds
    instead of 6 (measured). A view would also keep the whole frame in memory.
    """
    return np.frombuffer(data, "<u8").copy()


def settled(task_id: int, outcome: RootOutcome, roots: RootCounters) -> list[bytes]:
    """SETTLED segments: the outcome of these roots of a task, in the order in which they settled."""
    return [_settled(task_id, outcome, roots[part]) for part in _slices(len(roots))]


def settled_listed(task_id: int, outcome: RootOutcome, counters: list[int]) -> Iterator[bytes]:
    """SETTLED segments that list the roots, which are few."""
    for part in _slices(len(counters)):
        yield _listed(task_id, SegmentKind.SETTLED, counters[part], stream=outcome)


def _settled(task_id: int, outcome: RootOutcome, roots: RootCounters) -> bytes:
    count = len(roots)
    first = int(roots[0])
    if int(roots[-1]) - first + 1 == count and bool((np.diff(roots) == 1).all()):
        return settled_range(task_id, outcome, first, count)
    return tracking_segment(
        task_id, SegmentKind.SETTLED, LISTED, count, roots.astype("<i8", copy=False).tobytes(), stream=outcome
    )


def _counter(base: int, head: SegmentHead, rows: int) -> int:
    expect_counters(base, head, rows)
    return base


def _expect_few(head: SegmentHead, rows: int, tasks: int = 1) -> None:
    if rows > MAX_DERIVED_ROWS:
        msg = f"segment of kind {head.kind} derives {rows} roots; more than {MAX_DERIVED_ROWS} must be listed"
        raise RemoteProtocolError(msg, Violation.SIZE)
    if rows * tasks > MAX_DERIVED_KEYS:
        msg = (
            f"segment of kind {head.kind} derives the keys of {rows} roots for {tasks} tasks; more than "
            f"{MAX_DERIVED_KEYS} keys must be listed"
        )
        raise RemoteProtocolError(msg, Violation.SIZE)


def _slices(count: int, most: int = MOST_LISTED) -> Sequence[slice]:
    """All of `count` roots, in parts that one segment may list."""
    if 0 < count <= most:
        return (slice(0, count),)
    return [slice(at, min(at + most, count)) for at in range(0, count, most)]


def _causes(counters: list[int], why: Sequence[Cause]) -> Iterator[tuple[list[int], bytes]]:
    """The counters and the lines of CAUSE segments.

    Roots with equal causes come together, because a line has only what differs from the line before it.
    """
    documents, texts = [document for document, _ in why], [text for _, text in why]
    different, repeats = set(documents), len(set(texts)) < len(texts)
    if repeats or len(different) > 1:
        order = sorted(range(len(why)), key=why.__getitem__)
        counters, documents = [counters[place] for place in order], [documents[place] for place in order]
        texts = [texts[place] for place in order]
    longest = max(map(len, texts)) + len(b',"text":}\n')
    with_all = (MAX_CAUSES_BYTES - sum(map(len, different))) // longest
    each_with_one = MAX_CAUSES_BYTES // (max(map(len, different)) + longest)
    for part in _slices(len(why), min(MOST_LISTED, max(with_all, each_with_one))):
        lines, here = texts[part], documents[part]
        if repeats:
            lines[1:] = [b"" if text == before else text for before, text in pairwise(lines)]
        for document in set(here) if len(different) > 1 else different:
            first = here.index(document)
            text = texts[part.start + first]
            lines[first] = b'%s,"text":%s}' % (document[:-1], text) if text else document
        yield counters[part], b"\n".join(lines)


def _counters_by_task(roots: Iterable[int]) -> Iterator[tuple[int, list[int], Sequence[int]]]:
    """The counters of roots and their places among these, for each task."""
    listed = list(map(int, roots))
    first, last = min(listed, default=0) >> COUNTER_BITS, max(listed, default=-1) >> COUNTER_BITS
    if first == last:  # the usual case
        yield first, [root & _COUNTERS for root in listed], range(len(listed))
        return
    found: dict[int, list[int]] = {}
    for place, root in enumerate(listed):
        found.setdefault(root >> COUNTER_BITS, []).append(place)
    for task_id, places in sorted(found.items()):
        yield task_id, [listed[place] & _COUNTERS for place in places], places


def _listed(task_id: int, kind: SegmentKind, counters: list[int], more: bytes = b"", stream: int = 0) -> bytes:
    payload = struct.pack(f"<{len(counters)}Q", *counters) + more
    return tracking_segment(task_id, kind, LISTED, len(counters), payload, stream)


def _by_task(roots: U64) -> Iterator[tuple[int, NDArray[np.bool_] | slice]]:
    if len(roots) == 0:
        return
    tasks = roots >> _TASK_SHIFT
    changes = np.flatnonzero(tasks[1:] != tasks[:-1])
    if len(changes) == 0:
        yield int(tasks[0]), slice(None)
        return
    for task_id in sorted({int(tasks[0]), *tasks[changes + 1].tolist()}):  # roots come in long runs of one task
        yield task_id, tasks == np.uint64(task_id)
