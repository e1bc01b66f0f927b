"""What the engine knows of the record batches that a component received, as long as the component keeps them."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from pyarrow import RecordBatch

__all__ = ["ReceivedBatches"]

_Known = TypeVar("_Known")


class ReceivedBatches(Generic[_Known]):
    """A record batch has no place for a mark, and two equal ones are not the same: each is known by its identity."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref[RecordBatch], _Known]] = {}

    def add(self, batch: RecordBatch, known: _Known) -> None:
        """The component gets this batch; forgotten with the object."""
        place = id(batch)
        self._known[place] = (weakref.ref(batch, lambda _: self._known.pop(place, None)), known)

    def get(self, received: object) -> _Known | None:
        """What is known of a batch; None for a batch that the component did not receive, and for other objects."""
        found = self._known.get(id(received))
        return found[1] if found is not None and found[0]() is received else None
