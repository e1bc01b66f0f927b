"""What the rows of an output stream hang on: gathered per emit, resolved per batch. Pure.

An emit appends its anchor as it is (`parents`). While the batch that it stems from is still in work, `resolve` turns the
anchors of the rows since into places of that batch, so that its tuples can be used again before the rows are flushed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heron.api.tuple import Tuple
from heron.instance.in_batch import InBatch

__all__ = ["UNANCHORED", "Anchors", "Rooted"]

UNANCHORED = Tuple()
"""Stands for no anchor; its place, -1, is no place."""

Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Rooted:
    """Rows ``start`` … of the log that hang on one tuple each of one batch; place -1: on none."""

    start: int
    batch: InBatch
    places: Places


class Anchors:
    """The anchors of a stream's unflushed rows."""

    __slots__ = ("_resolved", "irregular", "parents", "regular")

    def __init__(self) -> None:
        self.parents: list[Tuple | tuple[Tuple, ...]] = []
        self.regular: list[Rooted] = []
        self.irregular: dict[int, list[tuple[InBatch, int]]] = {}
        self._resolved = 0

    def resolve(self, current: InBatch | None) -> None:
        """Resolves the rows since the last time; `current` is the batch in work."""
        parents = self.parents
        if not parents:
            return
        start = self._resolved
        self._resolved += len(parents)
        try:
            places = [parent._index for parent in parents if parent.id is None]  # type: ignore[union-attr]
        except AttributeError:  # an emit with several anchors
            places = []
        if len(places) == len(parents):
            if current is not None and max(places) >= 0:
                self.regular.append(Rooted(start, current, np.array(places, dtype=np.int64)))
        else:
            self._resolve_slowly(start, current)
        parents.clear()

    def take(self) -> tuple[list[Rooted], dict[int, list[tuple[InBatch, int]]]]:
        """What was resolved since the last flush."""
        taken = self.regular, self.irregular
        self.regular, self.irregular, self._resolved = [], {}, 0
        return taken

    def _resolve_slowly(self, start: int, current: InBatch | None) -> None:
        for row, parent in enumerate(self.parents, start):
            tuples = (parent,) if isinstance(parent, Tuple) else parent
            places = [
                (batch, tup._index)
                for tup in dict.fromkeys(tuples)
                if (batch := tup.id if tup.id is not None else current).__class__ is InBatch and tup._index >= 0
            ]
            if places:
                self.irregular[row] = places
