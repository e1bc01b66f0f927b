"""The part of ack tracking that needs arrays, as the rest sees it; loaded at the first need of it.

A task whose batches go to one destination and are acked whole needs none of it, and saves numpy's memory and import.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Protocol, cast

from heron.driver_kit.loading import load_object

if TYPE_CHECKING:  # the streams ask for arrays, and arrays are made from streams
    from heron.instance.anchors import Rooted
    from heron.instance.in_batch import InBatch
    from heron.instance.tracked_stream import AnchoredStream, TrackedStream

__all__ = ["Arrays", "arrays"]


class Arrays(Protocol):
    """What `heron.instance.array_tracking` does."""

    def root_segments(
        self, stream: TrackedStream, rows: list[object], base: int, with_id: list[int] | None
    ) -> list[bytes]:
        """A flush of roots from `base` on; `with_id` are the rows that are roots (None: all)."""
        ...

    def anchored_segments(
        self,
        stream: AnchoredStream,
        rows: list[object],
        regular: list[Rooted],
        irregular: dict[int, list[tuple[InBatch, int]]],
    ) -> list[bytes]:
        """A flush of rows that hang on received tuples, whose batches learn the keys."""
        ...

    def ack_segments(self, acked: list[tuple[InBatch, list[int] | None]]) -> list[bytes]:
        """Acks of these places of these batches (None: all)."""
        ...

    def fail_segments(self, failed: list[tuple[InBatch, list[int]]]) -> list[bytes]:
        """Fails of these places of these batches."""
        ...


@functools.cache
def arrays() -> Arrays:
    """The array part; the first call imports numpy."""
    return cast("Arrays", load_object("heron.instance.array_tracking:ArrayTracking", "ack tracking")())  # type: ignore[operator]
