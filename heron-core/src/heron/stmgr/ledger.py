"""The ack ledger of one spout task: for each root in flight, the XOR of the keys that are not acked yet. Pure.

A root is inserted with the XOR of the keys of its copies. An ack brings the XOR of the acked tuple's key and of all
keys emitted under it. When every tuple of the tree is acked, each key has come twice and the XOR is zero, whatever the
order. Roots are dense counters, so the ledger keeps arrays of 4,096 consecutive roots, its segments. A completed
segment is dropped as a whole. An ack that comes too late finds no segment, or a root that is not live.

Arrays cost 9 bytes a root, live or not, and 20-90 ns a tuple (measured). One root that nobody acks would keep all of
them in memory, so an old segment with few live roots becomes a dict. One entry of expiry covers all roots that were
inserted within a tenth of a second.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from heron.ipc.frames.tracking_arrays import U64, RootCounters

__all__ = ["FEW", "SEGMENT_ROOTS", "FewRoots", "Ledger", "ManyRoots"]

SEGMENT_ROOTS = 4096

FEW = 128
"""The live roots below which a dict is smaller than the arrays; a root costs at most 300 bytes in either."""

_SHIFT = SEGMENT_ROOTS.bit_length() - 1
_INSIDE = SEGMENT_ROOTS - 1
_NONE: RootCounters = np.empty(0, dtype=np.int64)
_YOUNG = 16  # the newest segments always stay arrays: they hold more roots than a spout usually has in flight
_BUCKET_S = 0.1  # roots that expire within this time may expire together, with the last of them

_Places = NDArray[np.int64]  # of roots within a segment: 0 ... 4095


@dataclass(slots=True)
class _Bucket:
    """Roots ``base`` ... ``end - 1``, which expire between these moments."""

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
        self._segments: dict[int, _RootSegment] = {}
        self._scratch = _Scratch()
        self._buckets: deque[_Bucket] = deque()
        self._missed = 0

    def insert(self, base: int, xors: U64, deadline_s: float) -> RootCounters:
        """Inserts roots base, base+1, ...; returns those without copies, which are complete at once.

        They expire at `deadline_s`, or never if it is infinite.
        """
        count = len(xors)
        newest = self._newest()
        self.next_root = max(self.next_root, base + count)
        if deadline_s != float("inf"):
            self._note_deadline(deadline_s, base, base + count)
        complete = np.flatnonzero(xors == 0).astype(np.int64) + base
        for number, start, end, offset in _parts(base, count):
            segment = self._segments.get(number)
            if not isinstance(segment, ManyRoots):  # counters grow, so a segment that is FewRoots gets no new roots
                segment = self._segments[number] = ManyRoots(self._scratch)
            segment.insert(start, xors[offset : offset + end - start])
        self.in_flight += count - len(complete)
        # A segment that completed while it was the newest, or that never had a live root, gets no ack that drops it.
        self._tidy(self._known(range(newest, self._newest() + 1)))
        self._tidy(self._known(range(newest - self._young_segments, self._newest() - self._young_segments)))
        return complete

    def update(self, roots: RootCounters, xors: U64) -> RootCounters:
        """Applies acks in any order; returns the roots that are complete now. Skips unknown and settled roots."""
        parts = []
        for number, segment, chosen in self._by_segment(roots):
            done, hits = segment.update(roots[chosen] & _INSIDE, xors[chosen])
            parts.append((number, done, hits))
        return self._settle(parts, len(roots))

    def update_range(self, base: int, xors: U64, acked: int | None = None) -> RootCounters:
        """Applies one ack for each of base, base+1, ...; returns the roots that are complete now.

        If only `acked` of them are acked, the others have failed before.
        """
        parts = []
        for number, start, end, offset in _parts(base, len(xors)):
            segment = self._segments.get(number)
            if segment is not None:
                done, hits = segment.update_range(start, end, xors[offset : offset + end - start])
                parts.append((number, done, hits))
        return self._settle(parts, len(xors) if acked is None else acked)

    def fail(self, roots: Sequence[int]) -> list[int]:
        """Removes roots; returns those that were in flight, each once and ascending. For few, arrays take longer."""
        segments = self._segments
        gone = [
            root
            for root in roots
            if (segment := segments.get(root >> _SHIFT)) is not None and segment.remove(root & _INSIDE)
        ]
        if len(gone) != len(roots):
            known = set(gone)
            self._missed += sum(root not in known for root in roots)
        self.in_flight -= len(gone)
        self._tidy({root >> _SHIFT for root in gone})
        gone.sort()
        return gone

    def fail_all(self) -> RootCounters:
        """Removes every root and returns them in order."""
        failed = [
            segment.live_between(0, SEGMENT_ROOTS) + (number << _SHIFT)
            for number, segment in sorted(self._segments.items(), key=lambda entry: entry[0])
        ]
        self._segments.clear()
        self._buckets.clear()
        self.in_flight = 0
        return np.concatenate(failed) if failed else _NONE

    def expire(self, now_s: float) -> RootCounters:
        """Removes the roots whose deadline has passed and returns them."""
        parts = []
        while self._buckets:
            bucket = self._buckets[0]
            if bucket.last_s <= now_s:
                parts += self._drop_range(bucket.base, bucket.end)
            elif any(number in self._segments for number in _span(bucket.base, bucket.end)):
                break
            self._buckets.popleft()  # expired, or complete before its deadline as usual
        return self._settle(parts, 0)

    def has_any(self, first: int, count: int) -> bool:
        """Whether any of these consecutive roots is in flight."""
        return any(
            number in self._segments and len(self._segments[number].live_between(start, end))
            for number, start, end, _ in _parts(first, count)
        )

    def take_missed(self) -> int:
        """The number of acks and fails since the last call whose roots were not in flight."""
        missed, self._missed = self._missed, 0
        return missed

    def _note_deadline(self, deadline_s: float, base: int, end: int) -> None:
        last = self._buckets[-1] if self._buckets else None
        if last is not None and base == last.end and deadline_s - last.first_s < _BUCKET_S:
            last.last_s, last.end = max(last.last_s, deadline_s), end
        else:
            self._buckets.append(_Bucket(deadline_s, deadline_s, base, end))

    def _drop_range(self, base: int, end: int) -> list[tuple[int, RootCounters, int]]:
        parts = []
        for number, start, until, _ in _parts(base, end - base):
            segment = self._segments.get(number)
            if segment is not None:
                gone = segment.live_between(start, until)
                segment.drop(gone)
                parts.append((number, gone, 0))
        return parts

    def _by_segment(self, roots: RootCounters) -> list[tuple[int, _RootSegment, NDArray[np.bool_] | slice]]:
        if not len(roots):
            return []
        numbers = roots >> _SHIFT
        first, last = int(numbers.min()), int(numbers.max())
        if first == last:
            segment = self._segments.get(first)
            return [(first, segment, slice(None))] if segment is not None else []
        # a few neighbouring segments are the usual case, and need no sorting
        among = range(first, last + 1) if last - first <= _YOUNG else np.unique(numbers).tolist()
        found: list[tuple[int, _RootSegment, NDArray[np.bool_] | slice]] = []
        for number in among:
            segment = self._segments.get(number)
            if segment is not None:
                found.append((number, segment, numbers == number))
        return found

    def _settle(self, parts: list[tuple[int, RootCounters, int]], received: int) -> RootCounters:
        """The roots of these ``(segment, places, hits)``; `received` acks or fails were to be applied."""
        self._missed += max(0, received - sum(hits for _, _, hits in parts))
        settled = [places + (number << _SHIFT) for number, places, _ in parts if len(places)]
        self._tidy(number for number, places, _ in parts if len(places))
        roots = settled[0] if len(settled) == 1 else np.concatenate(settled) if settled else _NONE
        self.in_flight -= len(roots)
        return roots

    def _tidy(self, numbers: Iterable[int]) -> None:
        """Frees what settled segments do not need; the newest segment is kept while it fills."""
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

    def _known(self, numbers: range) -> Iterable[int]:
        """The numbers that may have a segment: a peer may send roots that are far from all before."""
        return numbers if len(numbers) <= _YOUNG else [each for each in self._segments if each in numbers]

    def _newest(self) -> int:
        return (self.next_root - 1) >> _SHIFT


def _span(base: int, end: int) -> range:
    """The numbers of the segments that the range touches."""
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


class _RootSegment(Protocol):
    """The roots of 4,096 consecutive counters, in either shape. Places that are not live are skipped."""

    @property
    def live_count(self) -> int:
        """The number of live roots."""
        ...

    def update(self, places: _Places, xors: U64) -> tuple[_Places, int]:
        """Applies XORs at places in any order; a place may come several times.

        Returns the places that are complete now, each once, and how many of the given places were live.
        """
        ...

    def update_range(self, start: int, end: int, xors: U64) -> tuple[_Places, int]:
        """The same for the places from `start` up to `end`."""
        ...

    def remove(self, place: int) -> bool:
        """Removes a place; returns whether it was live."""
        ...

    def drop(self, places: _Places) -> None:
        """Removes live places."""
        ...

    def live_between(self, start: int, end: int) -> _Places:
        """The live places from `start` up to `end`, ascending."""
        ...


class _Scratch:
    """Memory to find repeated places without sorting; shared by all segments of a ledger."""

    __slots__ = ("_slot",)

    def __init__(self) -> None:
        self._slot: NDArray[np.int32] = np.zeros(SEGMENT_ROOTS, dtype=np.int32)

    def each_once(self, places: _Places) -> _Places:
        """The places, each once: the last occurrence of a place keeps the slot."""
        if len(places) < 2:
            return places
        order = np.arange(len(places), dtype=np.int32)
        self._slot[places] = order
        chosen: _Places = places[self._slot[places] == order]
        return chosen


class ManyRoots:
    """A segment as arrays."""

    __slots__ = ("_marks", "_scratch", "live", "live_count", "xors")

    def __init__(self, scratch: _Scratch) -> None:
        self._scratch = scratch
        self.xors: U64 = np.zeros(SEGMENT_ROOTS, dtype=np.uint64)
        self._marks = bytearray(SEGMENT_ROOTS)
        self.live: NDArray[np.bool_] = np.frombuffer(self._marks, dtype=np.bool_)  # the same memory
        self.live_count = 0

    def insert(self, start: int, xors: U64) -> None:
        """Inserts roots from place `start` on; a root whose XOR is zero is not live."""
        end = start + len(xors)
        self.xors[start:end] = xors
        live = xors != 0
        self.live[start:end] = live
        self.live_count += int(np.count_nonzero(live))

    def update(self, places: _Places, xors: U64) -> tuple[_Places, int]:
        """Applies XORs at places."""
        alive = self.live[places]
        if not alive.all():
            places, xors = places[alive], xors[alive]
        np.bitwise_xor.at(self.xors, places, xors)
        return self._taken(self._scratch.each_once(places[self.xors[places] == 0])), len(places)

    def update_range(self, start: int, end: int, xors: U64) -> tuple[_Places, int]:
        """Applies XORs to a range."""
        part, live = self.xors[start:end], self.live[start:end]
        hits = int(np.count_nonzero(live))
        part ^= xors
        return self._taken(np.flatnonzero((part == 0) & live) + start), hits

    def remove(self, place: int) -> bool:
        """Removes a place."""
        was_live = self._marks[place]
        if was_live:
            self._marks[place] = 0
            self.live_count -= 1
        return bool(was_live)

    def drop(self, places: _Places) -> None:
        """Removes places."""
        self._taken(places)

    def live_between(self, start: int, end: int) -> _Places:
        """The live places of a range."""
        found: _Places = np.flatnonzero(self.live[start:end]) + start
        return found

    def _taken(self, places: _Places) -> _Places:
        self.live[places] = False
        self.live_count -= len(places)
        return places


class FewRoots:
    """A segment as a dict from place to XOR."""

    __slots__ = ("_xors",)

    def __init__(self, many: ManyRoots) -> None:
        places = many.live_between(0, SEGMENT_ROOTS)
        self._xors: dict[int, int] = dict(zip(places.tolist(), many.xors[places].tolist(), strict=True))

    @property
    def live_count(self) -> int:
        """The number of live roots."""
        return len(self._xors)

    def update(self, places: _Places, xors: U64) -> tuple[_Places, int]:
        """Applies XORs at places."""
        hits, touched, known = 0, [], self._xors
        for place, xor in zip(places.tolist(), xors.tolist(), strict=True):
            if place in known:
                known[place] ^= xor
                touched.append(place)
                hits += 1
        return self._taken([place for place in dict.fromkeys(touched) if known[place] == 0]), hits

    def update_range(self, start: int, end: int, xors: U64) -> tuple[_Places, int]:
        """Applies XORs to a range."""
        places = self.live_between(start, end)
        return self.update(places, xors[places - start])

    def remove(self, place: int) -> bool:
        """Removes a place."""
        return self._xors.pop(place, None) is not None

    def drop(self, places: _Places) -> None:
        """Removes places."""
        self._taken(places.tolist())

    def live_between(self, start: int, end: int) -> _Places:
        """The live places of a range."""
        return np.array([place for place in self._xors if start <= place < end], dtype=np.int64)

    def _taken(self, places: list[int]) -> _Places:
        for place in places:
            del self._xors[place]
        return np.array(places, dtype=np.int64)
