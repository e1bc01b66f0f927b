"""What a task of Mesos has printed: the files of its sandbox, as the master and the agents of Mesos show them.

The caller sends the requests, so that it chooses the library, the credentials and the time limits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from urllib.parse import urlencode

from heron.errors import SchedulerError
from heron_scheduler_kit.managed.rest_api import Json, fields, items

__all__ = ["Get", "agent_address", "last_lines", "sandbox"]

Get = Callable[[str], object]
"""GET a document in JSON at a URL. Raises SchedulerError when there is none."""

_LINE_BYTES = 400  # of the logs of the engine, generously
_READ_BYTES = 1 << 16  # the most that an agent sends at once


def agent_address(get: Get, master: str, agent_id: str) -> str:
    """Return the URL of an agent from the master at a URL.

    Raises:
        SchedulerError: when the master does not know it.
    """
    for each in items(fields(get(f"{master}/state")).get("slaves")):
        if each.get("id") == agent_id:
            address = str(each.get("pid") or "").rpartition("@")[2]
            return f"{master.partition('://')[0]}://{address or each.get('hostname')}"
    msg = f"Mesos at {master} does not know the agent {agent_id}; it has left with the output of its tasks"
    raise SchedulerError(msg)


def sandbox(get: Get, agent: str, executor_id: str) -> str:
    """Return the folder of an executor on an agent at a URL; a task with a command has an executor of its own id.

    Raises:
        SchedulerError: when the agent does not know it.
    """
    state = fields(get(f"{agent}/state"))
    for executor in _executors(state):
        if executor.get("id") == executor_id:
            return str(executor.get("directory"))
    msg = f"the agent of Mesos at {agent} has no task {executor_id} any more"
    raise SchedulerError(msg)


def last_lines(get: Get, agent: str, path: str, lines: int) -> list[str]:
    """Return the last lines of a file on an agent. Raises SchedulerError when there is no such file."""
    end = _number(fields(get(_read(agent, path, -1, 0))).get("offset"))
    at, parts = max(0, end - lines * _LINE_BYTES), []
    while at < end:
        part = str(fields(get(_read(agent, path, at, min(_READ_BYTES, end - at)))).get("data") or "")
        if not part:
            break
        parts.append(part)
        at += len(part.encode())
    return "".join(parts).splitlines()[-lines:]


def _executors(state: Json) -> Iterator[Json]:
    for framework in (*items(state.get("frameworks")), *items(state.get("completed_frameworks"))):
        yield from items(framework.get("executors"))
        yield from items(framework.get("completed_executors"))


def _read(agent: str, path: str, offset: int, length: int) -> str:
    query = {"path": path, "offset": str(offset), **({"length": str(length)} if length else {})}
    return f"{agent}/files/read?{urlencode(query)}"


def _number(found: object) -> int:
    return found if isinstance(found, int) else 0
