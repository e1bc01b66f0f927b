"""The state of each task, from the reports of stream managers and executors. Pure.

A task that has ended or left stays so, whatever its process does afterwards. All other reports concern one incarnation,
and reports about an older incarnation are ignored.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Collection
from dataclasses import dataclass

from heron.ipc.documents.status import TaskStatus
from heron.planner.packing_plan import PackingPlan

__all__ = ["TaskEvent", "TaskReport", "TaskState", "TaskTable"]


class TaskState(enum.Enum):
    """`DOWN`: its executor does not restart it any more. `LEFT`: an update removes it, and it has sent everything."""

    STARTING = "starting"
    RUNNING = "running"
    RESTARTING = "restarting"
    FAILED = "failed"
    DOWN = "down"
    ENDED = "ended"
    LEFT = "left"


class TaskEvent(enum.Enum):
    """An event of a task. The task reports the first four, its executor the others."""

    INITIALISED = enum.auto()
    FAILED = enum.auto()
    ENDED = enum.auto()
    LEFT = enum.auto()
    STARTED = enum.auto()
    DIED = enum.auto()
    GIVEN_UP = enum.auto()


_S, _E = TaskState, TaskEvent

_TABLE = {
    _E.INITIALISED: dict.fromkeys((_S.STARTING, _S.RUNNING, _S.RESTARTING), _S.RUNNING),
    _E.FAILED: dict.fromkeys((_S.STARTING, _S.RUNNING, _S.RESTARTING, _S.FAILED), _S.FAILED),
    _E.ENDED: dict.fromkeys(_S, _S.ENDED),
    _E.LEFT: dict.fromkeys(_S, _S.LEFT),
    _E.STARTED: {_S.STARTING: _S.STARTING},
    _E.DIED: dict.fromkeys((_S.STARTING, _S.RUNNING, _S.RESTARTING, _S.FAILED), _S.RESTARTING),
    _E.GIVEN_UP: dict.fromkeys((_S.STARTING, _S.RUNNING, _S.RESTARTING, _S.FAILED, _S.DOWN), _S.DOWN),
}
"""Event, state, next state. A missing pair changes nothing, because the reports of two sources can cross."""


@dataclass(frozen=True, slots=True)
class TaskReport:
    """A report about a task; only executors report `restarts`.

    `restores` is the number of restores that a task had carried out when it reported; executors do not report it.
    """

    task_id: int
    incarnation: int
    event: TaskEvent
    error: str = ""
    restarts: int | None = None
    restores: int | None = None


class _TaskEntry:
    __slots__ = ("incarnation", "last_error", "restarts", "state")

    def __init__(self) -> None:
        self.incarnation = 0
        self.restarts = 0
        self.last_error = ""
        self.state = TaskState.STARTING


_FINAL = (TaskState.ENDED, TaskState.LEFT)


class TaskTable:
    """Every task of the packing plan."""

    def __init__(self, packing: PackingPlan, restores_of: Callable[[str], int] = lambda _component: 0) -> None:
        """`restores_of` gives the number of the last restore of a component: reports from before it are ignored."""
        self._restores_of = restores_of
        self._places: dict[int, tuple[str, int]] = {}
        self.former: dict[int, str] = {}
        """The component of each task that an update has removed; its counts stay part of the totals."""
        self._entries: dict[int, _TaskEntry] = {}
        self.set_packing(packing)

    def set_packing(self, packing: PackingPlan) -> None:
        """Replaces the packing plan; tasks that are in both keep their state."""
        before = self._places
        self._places = {
            instance.task_id: (instance.component, container_id) for container_id, instance in packing.instances()
        }
        self.former |= {task_id: before[task_id][0] for task_id in before.keys() - self._places.keys()}
        self._entries = {task_id: self._entries.get(task_id) or _TaskEntry() for task_id in self._places}

    def take(self, report: TaskReport) -> bool:
        """Takes a report; returns whether it changed the task."""
        entry = self._entries.get(report.task_id)
        if entry is None:
            return False
        if report.restores is not None and report.restores < self._restores_of(self._places[report.task_id][0]):
            return False
        if report.incarnation > entry.incarnation:
            entry.incarnation = report.incarnation
            if entry.state not in _FINAL:
                entry.state = TaskState.STARTING
        elif report.incarnation < entry.incarnation and report.event not in (TaskEvent.ENDED, TaskEvent.LEFT):
            return False
        if report.restarts is not None:
            entry.restarts = max(entry.restarts, report.restarts)
        following = _TABLE[report.event].get(entry.state)
        if following is None or entry.state in _FINAL:
            return False
        # The task's own reason for its failure is better than its executor's.
        if report.error and not (entry.state is TaskState.FAILED and report.event is not TaskEvent.FAILED):
            entry.last_error = report.error
        entry.state = following
        return True

    def restart(self, components: Collection[str]) -> None:
        """These components are restored: all their tasks start again, also those that have ended."""
        for task_id, entry in self._entries.items():
            restored = self._places[task_id][0] in components
            if restored and entry.state in (TaskState.RUNNING, TaskState.ENDED):
                entry.state = TaskState.STARTING

    def incarnation(self, task_id: int) -> int:
        """The newest incarnation of a task; 0 if it is unknown."""
        return self._entries[task_id].incarnation if task_id in self._entries else 0

    def note_error(self, task_id: int, error: str) -> None:
        """An error that did not end the task."""
        if task_id in self._entries:
            self._entries[task_id].last_error = error

    def last_error(self, task_id: int) -> str:
        """Why the task last failed; "" if it has not failed, or is unknown."""
        return self._entries[task_id].last_error if task_id in self._entries else ""

    def state(self, task_id: int) -> TaskState | None:
        """The state of a task; None if it is unknown."""
        return self._entries[task_id].state if task_id in self._entries else None

    def is_broken(self, task_id: int, most_deaths: float = math.inf) -> bool:
        """Whether it has failed, is given up, or has died more often than `most_deaths` and does not run."""
        entry = self._entries.get(task_id)
        if entry is None or entry.state in (TaskState.RUNNING, *_FINAL):
            return False
        return entry.state in (TaskState.FAILED, TaskState.DOWN) or entry.restarts > most_deaths

    def place(self, task_id: int) -> tuple[str, int]:
        """The component and container of a task; ``("", 0)`` if it is unknown."""
        return self._places.get(task_id, ("", 0))

    def all_ended(self) -> bool:
        """Whether every task has ended or left."""
        return bool(self._entries) and all(entry.state in _FINAL for entry in self._entries.values())

    def statuses(self) -> tuple[TaskStatus, ...]:
        """Every task, by id."""
        found = [
            TaskStatus(
                task_id=task_id,
                component=self._places[task_id][0],
                container_id=self._places[task_id][1],
                state=entry.state.value,
                incarnation=entry.incarnation,
                restarts=entry.restarts,
                last_error=entry.last_error,
            )
            for task_id, entry in sorted(self._entries.items())
        ]
        return tuple(found)
