"""What an executor reports of a process."""

from __future__ import annotations

from dataclasses import dataclass

from heron.tmanager.task_table import TaskEvent

__all__ = ["ProcessNews"]


@dataclass(frozen=True, slots=True)
class ProcessNews:
    """STARTED, DIED or GIVEN_UP; `task_id` is 0 for the engine's own processes."""

    container_id: int
    process: str
    task_id: int
    incarnation: int
    event: TaskEvent
    reason: str = ""
    restarts: int = 0
    pid: int = 0
