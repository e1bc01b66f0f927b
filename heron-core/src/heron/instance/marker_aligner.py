"""When a bolt has heard a marker from all its upstream tasks. Pure; the one place that aligns (design D16)."""

from __future__ import annotations

__all__ = ["EndAligner"]


class EndAligner:
    """Counts END markers by source task: doubled ones do no harm, those of former upstream tasks neither."""

    __slots__ = ("_ended", "_upstream")

    def __init__(self, upstream: frozenset[int]) -> None:
        self._upstream = upstream
        self._ended: set[int] = set()

    def set_upstream(self, upstream: frozenset[int]) -> None:
        """A new plan has other upstream tasks."""
        self._upstream = upstream

    def end(self, task_id: int) -> None:
        """An END marker of this task has arrived."""
        self._ended.add(task_id)

    def complete(self) -> bool:
        """Whether every upstream task has ended."""
        return self._upstream <= self._ended
