"""Whether a container that was restarted is back: every process anew, every task running again. Pure."""

from __future__ import annotations

from heron.ipc.status import TopologyStatus
from heron.spi.scheduler import ContainerStatus

__all__ = ["containers_of", "given_up", "missing", "refused"]

_MANAGERS = ("tmanager", "metricsmgr")
_OTHERS = ("stmgr", "metricsmgr")
_IN_VAIN = 3  # an executor that ends by itself so often says why, and no further start mends it
_DOWN = ("down", "failed")


def containers_of(status: TopologyStatus) -> tuple[int, ...]:
    """The containers of a topology; container 0, the topology manager's, comes last."""
    return (*sorted({task.container_id for task in status.tasks}), 0)


def missing(before: TopologyStatus, now: TopologyStatus, container_id: int) -> str:
    """What of the container is not back yet, "" when nothing is missing; `before` is from before its restart."""
    former = _incarnations(before, container_id)
    present = {each.process: each for each in now.processes if each.container_id == container_id}
    standby = {"tmanager"} & former.keys() if container_id else ()
    for name in (*_expected(now, container_id), *standby):
        found = present.get(name)
        if found is None or found.incarnation <= former.get(name, 0):
            return f"{name} is not started again yet"
        if found.state != "running":
            return f"{name} is {found.state}{_because(found.last_error)}"
    for task in now.tasks:
        if task.container_id == container_id and task.state not in {"running", "ended"}:
            return f"task {task.component}/{task.task_id} is {task.state}{_because(task.last_error)}"
    silent = {each.container_id for each in before.processes} - {each.container_id for each in now.processes}
    return f"container {min(silent)} has not found the topology manager yet" if silent else ""


def given_up(now: TopologyStatus, container_id: int) -> str:
    """Why the container cannot be back as a whole: a task or process that was given up; "" when there is none."""
    for task in now.tasks:
        if task.container_id == container_id and task.state in _DOWN:
            return f"task {task.component}/{task.task_id} is {task.state}{_because(task.last_error)}"
    for each in now.processes:
        if each.container_id == container_id and each.state in _DOWN:
            return f"{each.process} is {each.state}{_because(each.last_error)}"
    return ""


def refused(now: ContainerStatus | None, attempts: int) -> tuple[str, int]:
    """Why its executor does not begin, and after how many starts in vain it is time to give up (0: not yet).

    `attempts` are the starts before the restart, which makes one more.
    """
    if now is None or now.running or now.attempts <= attempts or not now.last_error:
        return "", 0
    tried = now.attempts - attempts
    return now.last_error, tried if tried >= _IN_VAIN else 0


def _expected(status: TopologyStatus, container_id: int) -> tuple[str, ...]:
    tasks = (f"{each.component}-{each.task_id}" for each in status.tasks if each.container_id == container_id)
    return "executor", *(_OTHERS if container_id else _MANAGERS), *tasks


def _incarnations(status: TopologyStatus, container_id: int) -> dict[str, int]:
    return {each.process: each.incarnation for each in status.processes if each.container_id == container_id}


def _because(error: str) -> str:
    return f": {error}" if error else ""
