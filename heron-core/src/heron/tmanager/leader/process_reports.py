"""The processes of every container, as the executors report them. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from msgspec.structs import replace

from heron.ipc.documents.status import ProcessStatus
from heron.kernel.role_spec import incarnation
from heron.tmanager.leader.task_table import TaskEvent

__all__ = ["ProcessReport", "ProcessTable"]

_EXECUTOR = "executor"
_STATES = {TaskEvent.STARTED: "running", TaskEvent.DIED: "restarting", TaskEvent.GIVEN_UP: "down"}


@dataclass(frozen=True, slots=True)
class ProcessReport:
    """An executor's report: STARTED, DIED or GIVEN_UP. `task_id` is 0 for the engine's processes."""

    container_id: int
    process: str
    task_id: int
    incarnation: int
    event: TaskEvent
    reason: str = ""
    restarts: int = 0
    pid: int = 0


class ProcessTable:
    """The present state of each process; reports about a former attempt of a container are ignored."""

    def __init__(self) -> None:
        self._containers: dict[int, dict[str, ProcessStatus]] = {}

    def begin(self, container_id: int, attempt: int, pid: int, host: str) -> None:
        """An executor has registered; a new attempt clears the processes of its container."""
        own = ProcessStatus(
            container_id, _EXECUTOR, "running", pid, incarnation(attempt, 0), restarts=max(0, attempt - 1), host=host
        )
        processes = self._containers.get(container_id, {})
        known = processes.get(_EXECUTOR)
        if known is None or known.incarnation < own.incarnation:
            self._containers[container_id] = {_EXECUTOR: own}
        elif known.incarnation == own.incarnation:
            processes[_EXECUTOR] = own

    def take(self, report: ProcessReport) -> None:
        """An executor reports one of its processes."""
        processes = self._containers.setdefault(report.container_id, {})
        known = processes.get(report.process)
        executor = processes.get(_EXECUTOR)
        if (known and report.incarnation < known.incarnation) or (
            executor and report.incarnation < executor.incarnation
        ):
            return
        status = ProcessStatus(
            container_id=report.container_id,
            process=report.process,
            state=_STATES[report.event],
            pid=report.pid,
            incarnation=report.incarnation,
            task_id=report.task_id,
            restarts=report.restarts,
            host=executor.host if executor else "",
            last_error=report.reason,
        )
        if not status.last_error and known:
            status = replace(status, last_error=known.last_error)
        processes[report.process] = status

    def keep(self, containers: Collection[int], task_ids: Collection[int]) -> None:
        """Forgets the processes of other containers, and those of other tasks."""
        for container_id, processes in tuple(self._containers.items()):
            if container_id not in containers:
                del self._containers[container_id]
                continue
            for name, process in tuple(processes.items()):
                if process.task_id and process.task_id not in task_ids:
                    del processes[name]

    def statuses(self) -> tuple[ProcessStatus, ...]:
        """Every process, by container: the executor first, then the others in the order of their first reports."""
        found = [
            process
            for _, processes in sorted(self._containers.items())
            for process in sorted(processes.values(), key=lambda each: each.process != _EXECUTOR)
        ]
        return tuple(found)
