"""The tasks that are in one call of user code for too long, as they report it. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from heron.clock import Clock
from heron.ipc.documents.status import LongCallStatus
from heron.tmanager.leader.instructions import Instruction, NoteEvent

__all__ = ["LongCallReport", "LongCallReports"]

_QUIET_S = 20.0  # a task repeats its report every 5 s; one that is silent has lost its connection, and the end with it


@dataclass(frozen=True, slots=True)
class LongCallReport:
    """A report of a task: the call lasts, or with `on` false it is over."""

    task_id: int
    incarnation: int
    on: bool
    function: str
    place: str
    lasts_s: float


class LongCallReports:
    """The present long call of each task."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._calls: dict[int, tuple[LongCallStatus, float]] = {}  # with the time of the last report

    def take(self, report: LongCallReport, component: str, incarnation: int) -> list[Instruction]:
        """Takes a report of a task of this component and newest incarnation; notes the begin and the end of a call."""
        if not component or report.incarnation < incarnation:
            return []
        known = self._calls.pop(report.task_id, None)
        facts = {"component": component, "function": report.function}
        if not report.on:
            facts |= {"duration_s": f"{report.lasts_s:.3f}"}
            return [NoteEvent("long-call-ended", f"task-{report.task_id}", facts)] if known is not None else []
        since_s = known[0].since_s if known is not None else self._clock.wall_s() - report.lasts_s
        status = LongCallStatus(report.task_id, component, report.function, report.place, since_s)
        self._calls[report.task_id] = status, self._clock.monotonic_s()
        facts |= {"place": report.place, "lasts_s": f"{report.lasts_s:.3f}"}
        return [NoteEvent("long-call", f"task-{report.task_id}", facts)] if known is None else []

    def forget(self, task_id: int) -> None:
        """The process of the task has ended or started."""
        self._calls.pop(task_id, None)

    def statuses(self) -> tuple[LongCallStatus, ...]:
        """The present long calls, the longest first."""
        heard_s = self._clock.monotonic_s() - _QUIET_S
        present = (status for status, reported_s in self._calls.values() if reported_s >= heard_s)
        return tuple(sorted(present, key=lambda each: each.since_s))
