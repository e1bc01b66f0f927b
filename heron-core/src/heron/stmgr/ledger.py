"""The ack ledger of one spout task: for each root in flight the XOR of the keys that are still out. Pure.

A root is inserted with the XOR of the keys of its copies. An ack brings the XOR of the acked tuple's key and of all
keys emitted under it; so when every tuple of the tree is acked, each key has come twice and the XOR is zero, whatever
the order. Roots are dense counters, so the ledger is arrays in segments: a completed segment is dropped whole, and a
stale ack finds no segment or a root that is not live. The last few roots of an old segment are kept one by one. One
entry of expiry stands for all that was emitted within a tenth of a second.

Every method works on arrays; a batch costs a few microseconds and 20-90 ns a tuple (measured, tuple-path).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heron.ipc.edge_key import U64
from heron.stmgr.root_segment import FEW, SEGMENT_ROOTS, FewRoots, ManyRoots, RootSegment, Scratch

__all__ = ["Counters", "Ledger"]

Counters = NDArray[np.int64]

_SHIFT = SEGMENT_ROOTS.bit_length() - 1
_INSIDE = SEGMENT_ROOTS - 1
_NONE: Counters = np.empty(0, dtype=np.int64)
_YOUNG = 16  # so many segments are always arrays: more than the roots that a spout has in flight unless told otherwise
_BUCKET_S = 0.1  # what expires within it may expire together, with the last; as often it is looked at


@dataclass(slots=True)
class _Bucket:
    """Roots ``base`` … ``end - 1``, whose time was over between these moments."""

    first_s: float
    last_s: float
    base: int
    end: int


class Ledger:
    """All roots in flight of one spout task. Counters only grow; times are monotonic seconds."""

    def __init__(self, first_root: int, *, young_segments: int = _YOUNG) -> None:
        self._young_segments = young_segments
        self.next_root = first_root
        self.in_flight = 0
        self._segments: dict[int, RootSegment] = {}
        self._scratch = Scratch()
        self._buckets: deque[_Bucket] = deque()
        self._missed = 0

    def insert(self, base: int, xors: U64, deadline_s: float) -> Counters:
        """Roots base, base+1, …; returns those that are complete at once, because they have no copies.

        `deadline_s` is when they expire (infinite: never).
        """
        count = len(xors)
        newest = self._newest()
        self.next_root = max(self.next_root, base + count)
        if deadline_s != float("inf"):
            self._note_deadline(deadline_s, base, base + count)
        complete = np.flatnonzero(xors == 0).astype(np.int64) + base
        for number, start, end, offset in _parts(base, count):
            segment = self._segments.get(number)
            if not isinstance(segment, ManyRoots):  # counters grow: none of a segment that is FewRoots comes again
                segment = self._segments[number] = ManyRoots(self._scratch)
            segment.insert(start, xors[offset : offset + end - start])
        self.in_flight += count - len(complete)
        # Where it was complete while it was the last, or has no live root at all, no ack will come to drop it.
        self._tidy(range(newest, self._newest() + 1))
        self._tidy(range(newest - self._young_segments, self._newest() - self._young_segments))
        return complete

    def update(self, roots: Counters, xors: U64) -> Counters:
        """Acks in any order; returns the roots that are complete now. Unknown and finished ones are passed over."""
        parts = []
        for number, segment, chosen in self._by_segment(roots):
            done, hits = segment.update(roots[chosen] & _INSIDE, xors[chosen])
            parts.append((number, done, hits))
        return self._settled(parts, len(roots))

    def update_range(self, base: int, xors: U64) -> Counters:
        """Acks of base, base+1, …, one each; returns the roots that are complete now."""
        parts = []
        for number, start, end, offset in _parts(base, len(xors)):
            segment = self._segments.get(number)
            if segment is not None:
                done, hits = segment.update_range(start, end, xors[offset : offset + end - start])
                parts.append((number, done, hits))
        return self._settled(parts, len(xors))

    def fail(self, roots: Counters) -> Counters:
        """Takes roots out; returns those that were in flight."""
        parts = []
        for number, segment, chosen in self._by_segment(roots):
            gone, hits = segment.drop(roots[chosen] & _INSIDE)
            parts.append((number, gone, hits))
        return self._settled(parts, len(roots))

    def fail_all(self) -> Counters:
        """Takes every root out, in order; returns them."""
        failed = [
            segment.live_between(0, SEGMENT_ROOTS) + (number << _SHIFT)
            for number, segment in sorted(self._segments.items(), key=lambda entry: entry[0])
        ]
        self._segments.clear()
        self._buckets.clear()
        self.in_flight = 0
        return np.concatenate(failed) if failed else _NONE

    def expire(self, now_s: float) -> Counters:
        """Takes out the roots whose time is over; returns them."""
        parts = []
        while self._buckets:
            bucket = self._buckets[0]
            if bucket.last_s <= now_s:
                parts += self._drop_range(bucket.base, bucket.end)
            elif any(number in self._segments for number in _span(bucket.base, bucket.end)):
                break
            self._buckets.popleft()  # all complete: the usual end
        return self._settled(parts, 0)

    def take_missed(self) -> int:
        """How many acks and fails since the last call were about roots that were not in flight."""
        missed, self._missed = self._missed, 0
        return missed

    def _note_deadline(self, deadline_s: float, base: int, end: int) -> None:
        last = self._buckets[-1] if self._buckets else None
        if last is not None and base == last.end and deadline_s - last.first_s < _BUCKET_S:
            last.last_s, last.end = max(last.last_s, deadline_s), end
        else:
            self._buckets.append(_Bucket(deadline_s, deadline_s, base, end))

    def _drop_range(self, base: int, end: int) -> list[tuple[int, Counters, int]]:
        parts = []
        for number, start, until, _ in _parts(base, end - base):
            segment = self._segments.get(number)
            if segment is not None:
                gone, _ = segment.drop(segment.live_between(start, until))
                parts.append((number, gone, 0))
        return parts

    def _by_segment(self, roots: Counters) -> list[tuple[int, RootSegment, NDArray[np.bool_] | slice]]:
        if not len(roots):
            return []
        numbers = roots >> _SHIFT
        first, last = int(numbers.min()), int(numbers.max())
        if first == last:
            segment = self._segments.get(first)
            return [(first, segment, slice(None))] if segment is not None else []
        # the usual few are looked for without sorting
        among = range(first, last + 1) if last - first <= _YOUNG else np.unique(numbers).tolist()
        found: list[tuple[int, RootSegment, NDArray[np.bool_] | slice]] = []
        for number in among:
            segment = self._segments.get(number)
            if segment is not None:
                found.append((number, segment, numbers == number))
        return found

    def _settled(self, parts: list[tuple[int, Counters, int]], told: int) -> Counters:
        """The roots of these ``(segment, places, hits)``; `told` is of how many roots the news were."""
        self._missed += max(0, told - sum(hits for _, _, hits in parts))
        settled = [places + (number << _SHIFT) for number, places, _ in parts if len(places)]
        self._tidy(number for number, places, _ in parts if len(places))
        roots = settled[0] if len(settled) == 1 else np.concatenate(settled) if settled else _NONE
        self.in_flight -= len(roots)
        return roots

    def _tidy(self, numbers: Iterable[int]) -> None:
        """Lets go of what settled segments do not need; the last is kept while it fills."""
        newest = self._newest()
        oldest_young = newest - self._young_segments
        for number in numbers:
            segment = self._segments.get(number)
            if segment is None or number >= newest:
                continue
            if segment.live_count == 0:
                del self._segments[number]
            elif isinstance(segment, ManyRoots) and segment.live_count <= FEW and number < oldest_young:
                self._segments[number] = FewRoots(segment)

    def _newest(self) -> int:
        return (self.next_root - 1) >> _SHIFT


def _span(base: int, end: int) -> range:
    """The segments that the range touches."""
    return range(base >> _SHIFT, ((end - 1) >> _SHIFT) + 1)


def _parts(base: int, count: int) -> list[tuple[int, int, int, int]]:
    """``(segment, start, end, offset)`` for each segment that the range touches."""
    parts = []
    offset = 0
    while offset < count:
        start = (base + offset) & _INSIDE
        size = min(SEGMENT_ROOTS - start, count - offset)
        parts.append(((base + offset) >> _SHIFT, start, start + size, offset))
        offset += size
    return parts
