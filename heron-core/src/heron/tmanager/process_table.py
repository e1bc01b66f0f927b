"""Every process of every container, as the executors report them. Pure."""

from __future__ import annotations

from dataclasses import replace

from heron.ipc.status import ProcessStatus
from heron.kernel.role_spec import incarnation
from heron.tmanager.process_news import ProcessNews
from heron.tmanager.task_table import TaskEvent

__all__ = ["ProcessTable"]

_EXECUTOR = "executor"
_STATES = {TaskEvent.STARTED: "running", TaskEvent.DIED: "restarting", TaskEvent.GIVEN_UP: "down"}


class ProcessTable:
    """What is known of each process now; news of a former attempt of its container is no news."""

    def __init__(self) -> None:
        self._containers: dict[int, dict[str, ProcessStatus]] = {}

    def begin(self, container_id: int, attempt: int, pid: int, host: str) -> None:
        """An executor says hello; with a new attempt its container begins anew."""
        own = ProcessStatus(
            container_id, _EXECUTOR, "running", pid, incarnation(attempt, 0), restarts=max(0, attempt - 1), host=host
        )
        processes = self._containers.get(container_id, {})
        known = processes.get(_EXECUTOR)
        if known is None or known.incarnation < own.incarnation:
            self._containers[container_id] = {_EXECUTOR: own}
        elif known.incarnation == own.incarnation:
            processes[_EXECUTOR] = own

    def take(self, news: ProcessNews) -> None:
        """An executor reports one of its processes."""
        processes = self._containers.setdefault(news.container_id, {})
        known = processes.get(news.process)
        executor = processes.get(_EXECUTOR)
        if (known and news.incarnation < known.incarnation) or (executor and news.incarnation < executor.incarnation):
            return
        told = ProcessStatus(
            container_id=news.container_id,
            process=news.process,
            state=_STATES[news.event],
            pid=news.pid,
            incarnation=news.incarnation,
            task_id=news.task_id,
            restarts=news.restarts,
            host=executor.host if executor else "",
            last_error=news.reason,
        )
        if not told.last_error and known:
            told = replace(told, last_error=known.last_error)
        processes[news.process] = told

    def statuses(self) -> tuple[ProcessStatus, ...]:
        """Every process, by container; executors first, then in the order in which they were reported."""
        found = [
            process
            for _, processes in sorted(self._containers.items())
            for process in sorted(processes.values(), key=lambda each: each.process != _EXECUTOR)
        ]
        return tuple(found)
