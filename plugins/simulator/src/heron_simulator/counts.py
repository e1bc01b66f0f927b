"""What a component did, as the report of a run shows it."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ComponentCounts"]


@dataclass(frozen=True, slots=True)
class ComponentCounts:
    """Tuples of a component, over all its tasks."""

    emitted: int = 0
    executed: int = 0
    acked: int = 0
    failed: int = 0

    def __add__(self, other: ComponentCounts) -> ComponentCounts:
        return ComponentCounts(
            self.emitted + other.emitted,
            self.executed + other.executed,
            self.acked + other.acked,
            self.failed + other.failed,
        )
