"""What the rows of an output stream hang on: gathered per emit, resolved per batch. Pure.

An emit appends its anchor as it is (`parents`). While the batch that it stems from is still in work, `resolve` turns
the anchors of the rows since into places of that batch, so that its tuples can be used again before the rows are
flushed. An anchor whose ack has left already is none: nobody could tell the ledger of what hangs on it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from heron.api.tuple import Tuple
from heron.errors import EmitError
from heron.instance.in_batch import InBatch

__all__ = ["UNANCHORED", "Anchors", "Rooted", "checked_anchors"]

UNANCHORED = Tuple()
"""Stands for no anchor; its place, -1, is no place."""


def checked_anchors(anchors: object) -> tuple[Tuple, ...]:
    """The anchors of an emit, however many they are.

    Raises:
        EmitError: when they are no iterable of received tuples.
    """
    if isinstance(anchors, Tuple):  # it can be iterated over: into its fields
        msg = f"anchors={anchors!r:.120} is a tuple itself; give a list: anchors=[tup]"
        raise EmitError(msg)
    if not isinstance(anchors, Iterable):
        msg = f"anchors={anchors!r:.120} is a {type(anchors).__name__}; give a list of received tuples, such as [tup]"
        raise EmitError(msg)
    found = tuple(anchors)
    for each in found:
        if not isinstance(each, Tuple):
            msg = f"anchors has {each!r:.120}, a {type(each).__name__}; give the tuples that `process` received"
            raise EmitError(msg)
    return found


@dataclass(frozen=True, slots=True)
class Rooted:
    """Rows ``start`` … of the log that hang on one tuple each of one batch; place -1: on none."""

    start: int
    batch: InBatch
    places: list[int]


class Anchors:
    """The anchors of a stream's unflushed rows."""

    __slots__ = ("_irregular", "_regular", "_resolved", "parents")

    def __init__(self) -> None:
        self.parents: list[Tuple | tuple[Tuple, ...]] = []
        self._regular: list[Rooted] = []
        self._irregular: dict[int, list[tuple[InBatch, int]]] = {}
        self._resolved = 0

    def resolve(self, current: InBatch | None, rows: int | None = None) -> None:
        """Resolves the rows since the last time, up to `rows` of the log; `current` is the batch in work."""
        parents = self.parents if rows is None else self.parents[: rows - self._resolved]
        if not parents:
            return
        count = len(parents)
        start = self._resolved
        self._resolved += count
        try:
            places = [parent._index for parent in parents if parent.id is None]  # type: ignore[union-attr]
        except AttributeError:  # an emit with several anchors, or with an empty list of them
            places = []
        if len(places) != count:
            self._resolve_slowly(parents, start, current)
        elif current is not None and max(places) >= 0:
            if current.acks_left:
                places = [place if place >= 0 and current.takes_children(place) else -1 for place in places]
            self._regular.append(Rooted(start, current, places))
        del self.parents[:count]

    def take(self) -> tuple[list[Rooted], dict[int, list[tuple[InBatch, int]]]]:
        """What was resolved since the last flush: rows of one anchor in work, and all others."""
        taken = self._regular, self._irregular
        self._regular, self._irregular, self._resolved = [], {}, 0
        return taken

    def _resolve_slowly(self, parents: list[Tuple | tuple[Tuple, ...]], start: int, current: InBatch | None) -> None:
        for row, parent in enumerate(parents, start):
            tuples = parent if isinstance(parent, tuple) else (parent,)
            places = []
            for tup in dict.fromkeys(tuples):
                batch = current if tup.id is None else tup.id
                if isinstance(batch, InBatch) and tup._index >= 0 and batch.takes_children(tup._index):
                    places.append((batch, tup._index))
            if places:
                self._irregular[row] = places
