"""The ack ledger of one spout task: for each root in flight the XOR of the keys that are still out. Pure.

A root is inserted with the XOR of the keys of its copies. An ack brings the XOR of the acked tuple's key and of all
keys emitted under it; so when every tuple of the tree is acked, each key has come twice and the XOR is zero, whatever
the order. Roots are dense counters, so the ledger is arrays in segments: a completed segment is dropped whole, and a
stale ack finds no segment or a root that is not live. One entry of expiry stands for a whole emitted batch.

Every method works on arrays; a batch costs a few microseconds and 20-90 ns a tuple (measured, tuple-path).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from heron.ipc.edge_key import U64

__all__ = ["Counters", "Ledger"]

Counters = NDArray[np.int64]

SEGMENT_ROOTS = 4096
_SHIFT = 12
_INSIDE = SEGMENT_ROOTS - 1
_NONE: Counters = np.empty(0, dtype=np.int64)


class _Segment:
    """The roots of 4,096 consecutive counters."""

    __slots__ = ("live", "live_count", "slot", "xors")

    def __init__(self) -> None:
        self.xors: U64 = np.zeros(SEGMENT_ROOTS, dtype=np.uint64)
        self.live: NDArray[np.bool_] = np.zeros(SEGMENT_ROOTS, dtype=np.bool_)
        self.slot: NDArray[np.int32] = np.zeros(SEGMENT_ROOTS, dtype=np.int32)
        self.live_count = 0

    def update(self, places: NDArray[np.int64], xors: U64) -> NDArray[np.int64]:
        """Applies XORs at places in any order, doubled ones too; the places that are complete now, each once."""
        alive = self.live[places]
        if not alive.all():
            places, xors = places[alive], xors[alive]
        np.bitwise_xor.at(self.xors, places, xors)
        done: NDArray[np.int64] = places[self.xors[places] == 0]
        if len(done) > 1:
            order = np.arange(len(done), dtype=np.int32)
            self.slot[done] = order
            done = done[self.slot[done] == order]  # one of each, without sorting
        self.live[done] = False
        self.live_count -= len(done)
        return done

    def update_range(self, start: int, end: int, xors: U64) -> NDArray[np.int64]:
        """Applies one XOR to each place of a range."""
        part = self.xors[start:end]
        part ^= xors
        done: NDArray[np.int64] = np.flatnonzero((part == 0) & self.live[start:end]) + start
        self.live[done] = False
        self.live_count -= len(done)
        return done

    def drop(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Takes live places out; those that were live, each once."""
        gone: NDArray[np.int64] = np.unique(places[self.live[places]])
        self.live[gone] = False
        self.live_count -= len(gone)
        return gone


class Ledger:
    """All roots in flight of one spout task. Counters only grow; times are monotonic seconds."""

    def __init__(self, first_root: int) -> None:
        self.next_root = first_root
        self.in_flight = 0
        self._segments: dict[int, _Segment] = {}
        self._expiries: deque[tuple[float, int, int]] = deque()

    def insert(self, base: int, xors: U64, deadline_s: float) -> Counters:
        """Roots base, base+1, …; returns those that are complete at once, because they have no copies.

        `deadline_s` is when they expire (infinite: never).
        """
        count = len(xors)
        before = (self.next_root - 1) >> _SHIFT
        self.next_root = max(self.next_root, base + count)
        if deadline_s != float("inf"):
            self._expiries.append((deadline_s, base, count))
        complete = np.flatnonzero(xors == 0).astype(np.int64) + base
        for number, start, end, offset in _parts(base, count):
            segment = self._segments.get(number)
            if segment is None:
                segment = self._segments[number] = _Segment()
            part = xors[offset : offset + end - start]
            segment.xors[start:end] = part
            live = part != 0
            segment.live[start:end] = live
            segment.live_count += int(np.count_nonzero(live))
        self.in_flight += count - len(complete)
        # Where it was complete while it was the last, or has no live root at all, no ack will come to drop it.
        self._drop_settled(range(before, self.next_root >> _SHIFT))
        return complete

    def update(self, roots: Counters, xors: U64) -> Counters:
        """Acks in any order; returns the roots that are complete now. Unknown and finished roots are passed over."""
        completed = [
            segment.update(roots[chosen] & _INSIDE, xors[chosen]) + (number << _SHIFT)
            for number, segment, chosen in self._by_segment(roots)
        ]
        return self._settled(completed, _numbers(roots))

    def update_range(self, base: int, xors: U64) -> Counters:
        """Acks of base, base+1, …, one each; returns the roots that are complete now."""
        completed, numbers = [], []
        for number, start, end, offset in _parts(base, len(xors)):
            segment = self._segments.get(number)
            if segment is not None:
                done = segment.update_range(start, end, xors[offset : offset + end - start])
                completed.append(done + (number << _SHIFT))
                numbers.append(number)
        return self._settled(completed, numbers)

    def fail(self, roots: Counters) -> Counters:
        """Takes roots out; returns those that were in flight."""
        failed = [
            segment.drop(roots[chosen] & _INSIDE) + (number << _SHIFT)
            for number, segment, chosen in self._by_segment(roots)
        ]
        return self._settled(failed, _numbers(roots))

    def fail_all(self) -> Counters:
        """Takes every root out, in order; returns them."""
        failed = [
            np.flatnonzero(segment.live) + (number << _SHIFT) for number, segment in sorted(self._segments.items())
        ]
        self._segments.clear()
        self._expiries.clear()
        self.in_flight = 0
        return np.concatenate(failed) if failed else _NONE

    def expire(self, now_s: float) -> Counters:
        """Takes out the roots whose time is over; returns them."""
        expired = []
        while self._expiries and self._expiries[0][0] <= now_s:
            _, base, count = self._expiries.popleft()
            expired.append(self.fail(np.arange(base, base + count, dtype=np.int64)))
        return np.concatenate(expired) if expired else _NONE

    def next_expiry_s(self) -> float:
        """When the next batch may expire; infinite when there is none."""
        while self._expiries and not self._any_segment(*self._expiries[0][1:]):
            self._expiries.popleft()  # all complete: the usual end
        return self._expiries[0][0] if self._expiries else float("inf")

    def _any_segment(self, base: int, count: int) -> bool:
        return any(number in self._segments for number in range(base >> _SHIFT, ((base + count - 1) >> _SHIFT) + 1))

    def _by_segment(self, roots: Counters) -> list[tuple[int, _Segment, NDArray[np.bool_] | slice]]:
        numbers = roots >> _SHIFT
        found: list[tuple[int, _Segment, NDArray[np.bool_] | slice]] = []
        if len(numbers) and numbers[0] == numbers[-1] and (numbers == numbers[0]).all():
            segment = self._segments.get(int(numbers[0]))
            return [(int(numbers[0]), segment, slice(None))] if segment is not None else []
        for number in np.unique(numbers).tolist():
            segment = self._segments.get(number)
            if segment is not None:
                found.append((number, segment, numbers == number))
        return found

    def _settled(self, parts: list[Counters], numbers: list[int]) -> Counters:
        settled = parts[0] if len(parts) == 1 else np.concatenate(parts) if parts else _NONE
        self.in_flight -= len(settled)
        self._drop_settled(numbers)
        return settled

    def _drop_settled(self, numbers: Iterable[int]) -> None:
        # The last segment is kept while it still fills: its later roots are yet to come.
        newest = (self.next_root - 1) >> _SHIFT
        for number in numbers:
            segment = self._segments.get(number)
            if segment is not None and segment.live_count == 0 and number < newest:
                del self._segments[number]


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


def _numbers(roots: Counters) -> list[int]:
    return np.unique(roots >> _SHIFT).tolist() if len(roots) else []
