"""The tasks of this stream manager's container. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from heron.planner.physical_plan import PlanIndex

__all__ = ["LocalTasks"]


class LocalTasks:
    """The local tasks: those that the container started with, until a plan replaces them.

    `leaving` are the tasks that an update removes.
    """

    __slots__ = ("_container_id", "ids", "leaving")

    def __init__(self, container_id: int, ids: Iterable[int]) -> None:
        self._container_id = container_id
        self.ids = frozenset(ids)
        self.leaving: frozenset[int] = frozenset()

    def set_plan(self, index: PlanIndex) -> None:
        """Takes the local tasks of a plan."""
        update = index.plan.update
        self.ids = frozenset(task.task_id for task in index.plan.tasks if task.container_id == self._container_id)
        self.leaving = self.ids & frozenset(update.removed if update is not None else ())

    def container_leaves(self) -> bool:
        """Whether an update removes all local tasks, and with them the container."""
        return bool(self.ids) and self.ids == self.leaving
