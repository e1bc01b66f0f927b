"""A batch of rows that is not decoded, as a component passes it on to a program in another language."""

from __future__ import annotations

from dataclasses import dataclass

from heron.api.tuple import Tuple

__all__ = ["PlainBatch"]


@dataclass(frozen=True, slots=True, eq=False)
class PlainBatch:
    """Received rows in the encoding ``plain`` (`WIRE.md`): columns of one scalar type each.

    A batch is equal only to itself. `component`, `stream` and `task` are where it comes from. `payload` stays unchanged
    and valid as long as it is kept. `id` is for the engine.
    """

    component: str
    stream: str
    task: int
    rows: int
    payload: bytes | memoryview
    id: object = None

    def anchor(self, place: int) -> Tuple:
        """Return the row at this place as an anchor for `emit`; it has no values."""
        return Tuple(self.id, (), place)
