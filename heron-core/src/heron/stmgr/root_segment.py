"""The roots of 4,096 consecutive counters, in one of two shapes: arrays while they are many, a dict once they are few.

Arrays cost 9 bytes a root, live or not, and nanoseconds an ack. A root that nobody acks would pin all of them: so what
is left of an old segment is kept root by root.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from heron.ipc.edge_key import U64

__all__ = ["FEW", "SEGMENT_ROOTS", "FewRoots", "ManyRoots", "Places", "RootSegment", "Scratch"]

SEGMENT_ROOTS = 4096
FEW = 128  # from so many on a dict is smaller than the arrays; a root costs 300 bytes at most, in either

Places = NDArray[np.int64]


class RootSegment(Protocol):
    """What both shapes do. Places are 0 … 4095; what is not live is passed over."""

    @property
    def live_count(self) -> int:
        """How many roots are live."""
        ...

    def update(self, places: Places, xors: U64) -> tuple[Places, int]:
        """Applies XORs at places in any order, doubled ones too.

        The places that are complete now, each once, and how many of the given ones were live.
        """
        ...

    def update_range(self, start: int, end: int, xors: U64) -> tuple[Places, int]:
        """The same for the places from `start` up to `end`."""
        ...

    def drop(self, places: Places) -> tuple[Places, int]:
        """Takes places out: those that were live, each once and ascending, and how many of the given ones were."""
        ...

    def live_between(self, start: int, end: int) -> Places:
        """The live places from `start` up to `end`, ascending."""
        ...


class Scratch:
    """Room to find doubled places in, without sorting; for all segments of a ledger."""

    __slots__ = ("_slot",)

    def __init__(self) -> None:
        self._slot: NDArray[np.int32] = np.zeros(SEGMENT_ROOTS, dtype=np.int32)

    def each_once(self, places: Places) -> Places:
        """The places, each once: of doubled ones each takes the slot, and the last has it."""
        if len(places) < 2:
            return places
        order = np.arange(len(places), dtype=np.int32)
        self._slot[places] = order
        chosen: Places = places[self._slot[places] == order]
        return chosen


class ManyRoots:
    """As arrays."""

    __slots__ = ("_scratch", "live", "live_count", "xors")

    def __init__(self, scratch: Scratch) -> None:
        self._scratch = scratch
        self.xors: U64 = np.zeros(SEGMENT_ROOTS, dtype=np.uint64)
        self.live: NDArray[np.bool_] = np.zeros(SEGMENT_ROOTS, dtype=np.bool_)
        self.live_count = 0

    def insert(self, start: int, xors: U64) -> None:
        """Roots from place `start` on; one whose XOR is zero is none."""
        end = start + len(xors)
        self.xors[start:end] = xors
        live = xors != 0
        self.live[start:end] = live
        self.live_count += int(np.count_nonzero(live))

    def update(self, places: Places, xors: U64) -> tuple[Places, int]:
        """`RootSegment.update`."""
        alive = self.live[places]
        if not alive.all():
            places, xors = places[alive], xors[alive]
        np.bitwise_xor.at(self.xors, places, xors)
        return self._taken(self._scratch.each_once(places[self.xors[places] == 0])), len(places)

    def update_range(self, start: int, end: int, xors: U64) -> tuple[Places, int]:
        """`RootSegment.update_range`."""
        part, live = self.xors[start:end], self.live[start:end]
        hits = int(np.count_nonzero(live))
        part ^= xors
        return self._taken(np.flatnonzero((part == 0) & live) + start), hits

    def drop(self, places: Places) -> tuple[Places, int]:
        """`RootSegment.drop`."""
        hit = places[self.live[places]]
        return self._taken(np.unique(hit)), len(hit)

    def live_between(self, start: int, end: int) -> Places:
        """`RootSegment.live_between`."""
        found: Places = np.flatnonzero(self.live[start:end]) + start
        return found

    def _taken(self, places: Places) -> Places:
        self.live[places] = False
        self.live_count -= len(places)
        return places


class FewRoots:
    """As a dict from place to XOR."""

    __slots__ = ("_xors",)

    def __init__(self, many: ManyRoots) -> None:
        places = many.live_between(0, SEGMENT_ROOTS)
        self._xors: dict[int, int] = dict(zip(places.tolist(), many.xors[places].tolist(), strict=True))

    @property
    def live_count(self) -> int:
        """How many there are."""
        return len(self._xors)

    def update(self, places: Places, xors: U64) -> tuple[Places, int]:
        """`RootSegment.update`."""
        hits, touched, known = 0, [], self._xors
        for place, xor in zip(places.tolist(), xors.tolist(), strict=True):
            if place in known:
                known[place] ^= xor
                touched.append(place)
                hits += 1
        return self._taken([place for place in dict.fromkeys(touched) if known[place] == 0]), hits

    def update_range(self, start: int, end: int, xors: U64) -> tuple[Places, int]:
        """`RootSegment.update_range`."""
        places = self.live_between(start, end)
        return self.update(places, xors[places - start])

    def drop(self, places: Places) -> tuple[Places, int]:
        """`RootSegment.drop`."""
        hit = [place for place in places.tolist() if place in self._xors]
        return self._taken(sorted(set(hit))), len(hit)

    def live_between(self, start: int, end: int) -> Places:
        """`RootSegment.live_between`."""
        return np.array([place for place in self._xors if start <= place < end], dtype=np.int64)

    def _taken(self, places: list[int]) -> Places:
        for place in places:
            del self._xors[place]
        return np.array(places, dtype=np.int64)
