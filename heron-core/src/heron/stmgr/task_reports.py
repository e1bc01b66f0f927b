"""What the instances of a container last said of themselves."""

from __future__ import annotations

from heron.ipc import control_pb2 as pb

__all__ = ["TaskReports"]


class TaskReports:
    """The newest report of each task; an end stays, whatever comes later."""

    __slots__ = ("_by_task",)

    def __init__(self) -> None:
        self._by_task: dict[int, pb.TaskReport] = {}

    def note(self, report: pb.TaskReport) -> None:
        """Takes a report."""
        if not self.ended(report.task_id):
            self._by_task[report.task_id] = report

    def ended(self, task_id: int) -> bool:
        """Whether this task has ended."""
        report = self._by_task.get(task_id)
        return report is not None and report.phase == pb.TASK_PHASE_ENDED

    def all(self) -> tuple[pb.TaskReport, ...]:
        """The newest report of every task."""
        return tuple(self._by_task.values())
