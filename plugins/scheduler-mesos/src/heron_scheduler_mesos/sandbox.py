"""Reads files of tasks from their sandboxes, over HTTP from their agents."""

from __future__ import annotations

from contextlib import suppress

import httpx
import msgspec

from heron.errors import SchedulerError
from heron_scheduler_kit.attempt_process import NOTE, Note
from heron_scheduler_kit.mesos_files import last_lines, sandbox
from heron_scheduler_mesos.mesos_access import MesosAccess
from heron_scheduler_mesos.tasks import Task

__all__ = ["read_note", "read_output"]

_NOTE_LINES = 100  # it is one, which may be long


def read_note(access: MesosAccess, task: Task) -> Note | None:
    """Return what the process of a task has noted; None when it has not yet, or its agent does not answer.

    Of a process that has failed without a note it is the last line of its errors, such as a missing module.
    """
    try:
        noted = "".join(_last_lines(access, task, NOTE, _NOTE_LINES))
        return msgspec.json.decode(noted, type=Note)
    except (SchedulerError, msgspec.MsgspecError):
        if not task.failed:
            return None
    with suppress(SchedulerError):
        said = _last_lines(access, task, "stderr", 1)
        return Note(error="; ".join([task.error, *said]), own=True)
    return None


def read_output(access: MesosAccess, task: Task, lines: int) -> list[str]:
    """Return the last lines that a task has printed. Raises SchedulerError when its agent does not have them."""
    return _last_lines(access, task, "stdout", lines)


def _last_lines(access: MesosAccess, task: Task, name: str, lines: int) -> list[str]:
    with access.client() as client:

        def get(url: str) -> object:
            try:
                response = client.get(url)
                response.raise_for_status()
                return response.json()
            except (httpx.HTTPError, ValueError) as error:
                why = str(error) or type(error).__name__
                msg = f"the agent of Mesos at {task.agent} does not give files of {task.task_id}: {why}"
                raise SchedulerError(msg) from error

        return last_lines(get, task.agent, f"{sandbox(get, task.agent, task.task_id)}/{name}", lines)
