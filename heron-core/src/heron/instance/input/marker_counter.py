"""Which tasks upstream have ended, or have switched to a newer plan."""

from __future__ import annotations

from heron.planner.physical_plan import PlanUpdate

__all__ = ["MarkerCounter"]


class MarkerCounter:
    """Counts END and PLAN markers by source task. Markers that are repeated, or of former upstream tasks, do nothing.

    `channel_alignment` aligns the markers of checkpoints, and `watermarks` combines watermarks.
    """

    __slots__ = ("_ended", "_switched", "_upstream")

    def __init__(self, upstream: frozenset[int]) -> None:
        self._upstream = upstream
        self._ended: set[int] = set()
        self._switched: dict[int, int] = {}

    def set_upstream(self, upstream: frozenset[int]) -> None:
        """Replaces the upstream tasks by those of a new plan."""
        self._upstream = upstream

    def end(self, task_id: int) -> None:
        """Counts an END marker of this task."""
        self._ended.add(task_id)

    def switch(self, task_id: int, update: int) -> None:
        """Counts a PLAN marker of this task, with the number of an update."""
        self._switched[task_id] = max(update, self._switched.get(task_id, 0))

    def complete(self) -> bool:
        """Whether every upstream task has ended."""
        return self._upstream <= self._ended

    def switched(self, update: PlanUpdate) -> bool:
        """Whether every upstream task sends this task nothing more: its PLAN marker has come, or its END.

        Each upstream task sends one at the switch, added tasks too. Absent tasks send nothing.
        """
        silent = self._ended.union(update.absent)
        return all(self._switched.get(task, 0) >= update.number for task in self._upstream - silent)
