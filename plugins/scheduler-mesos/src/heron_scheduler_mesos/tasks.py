"""The tasks of a framework: events of Mesos in, calls to Mesos out. Pure.

                launched            TASK_RUNNING
    WAITING ───────────────▶ LAUNCHED ─────▶ RUNNING
       │                        │               │
       └── end asked ───────────┴── terminal ───┴──▶ ENDED, until the supervisor has heard of it

A task is written to the job folder before Mesos hears of it. So a supervisor that starts again knows all tasks that may
run, and asks Mesos for their states. Mesos repeats updates until they are acknowledged, which follows the writing too.
A call whose answer was lost may have worked. `heron_scheduler_mesos.master_link` then subscribes again: Mesos refuses
whatever still arrives of the former subscription, so that a task it does not know then will not start later.
"""

from __future__ import annotations

import enum
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field

from heron_scheduler_kit.managed.rest_api import Json, fields
from heron_scheduler_mesos.constraints import Place
from heron_scheduler_mesos.offers import Offer

__all__ = ["Task", "TaskPhase", "Tasks", "call"]

_RUNNING, _FINISHED = "TASK_RUNNING", "TASK_FINISHED"
_LIVE = frozenset({"TASK_STAGING", "TASK_STARTING", _RUNNING, "TASK_KILLING"})
_LOST = {
    "TASK_LOST": "Mesos has lost it",
    "TASK_DROPPED": "Mesos has not started it",
    "TASK_UNREACHABLE": "its agent is lost",
    "TASK_GONE": "its agent is gone",
    "TASK_GONE_BY_OPERATOR": "an operator has declared its agent gone",
    "TASK_UNKNOWN": "Mesos does not know it",
}
_MOST = 400


class TaskPhase(enum.Enum):
    """What the framework knows of a task."""

    WAITING = "waiting"
    LAUNCHED = "launched"
    RUNNING = "running"
    ENDED = "ended"


@dataclass(slots=True)
class Task:
    """The present attempt of a container. `agent` is the URL of its agent.

    `error` is why it has ended ("": in order). `failed` is whether its process has failed, so that it may have left a
    reason. `grace_s` is set when its end was asked for. `reported` is whether this supervisor has heard of its end.
    """

    container_id: int
    attempt: int
    manager: bool = False
    task_id: str = ""
    agent_id: str = ""
    agent: str = ""
    host: str = ""
    attributes: dict[str, str] = field(default_factory=dict)
    phase: TaskPhase = TaskPhase.WAITING
    error: str = ""
    failed: bool = False
    grace_s: float | None = None
    reported: bool = False

    @property
    def known(self) -> bool:
        """Whether Mesos may run it."""
        return self.phase in {TaskPhase.LAUNCHED, TaskPhase.RUNNING}

    @property
    def place(self) -> Place:
        """Where it runs."""
        return Place(self.host, self.attributes, self.manager)


def call(kind: str, **body: object) -> Json:
    """Return a call without the id of the framework."""
    return {"type": kind, **({kind.lower(): body} if body else {})}


class Tasks:
    """The tasks of one framework, one for each container."""

    def __init__(self, tasks: dict[int, Task] | None = None, launches: int = 0) -> None:
        """`tasks` are those that a former supervisor has written, of the `launches` so far.

        The number of a launch is the claim of an attempt: a container that is added again begins with attempt 1 again.
        """
        self.launches = launches
        self.by_container = tasks if tasks is not None else {}
        for each in self.by_container.values():
            each.reported = False

    def start(self, container_id: int, attempt: int, *, manager: bool = False) -> None:
        """Begin an attempt, or go on with it if a former supervisor has begun it.

        A container that was removed and is added again begins with the same attempt as before.
        """
        found = self.by_container.get(container_id)
        if found is None or found.attempt != attempt or found.reported:
            self.by_container[container_id] = Task(container_id, attempt, manager)

    def waiting(self) -> Iterator[Task]:
        """Return the tasks that need an offer."""
        return (each for each in self.by_container.values() if each.phase is TaskPhase.WAITING)

    def launch(self, container_id: int, offer: Offer) -> Task:
        """Give the task an offer; the caller writes it before Mesos hears of it."""
        task = self.by_container[container_id]
        self.launches += 1
        task.task_id = f"container-{container_id}.{task.attempt}.{secrets.token_hex(4)}"
        task.agent_id, task.agent = offer.agent_id, offer.agent
        task.host, task.attributes = offer.place.host, dict(offer.place.attributes)
        task.phase = TaskPhase.LAUNCHED
        return task

    def update(self, status: Json) -> list[Json]:
        """Record a state. The calls that follow are made when the tasks are written."""
        task_id, agent_id, state = _id(status, "task_id"), _id(status, "agent_id"), str(status.get("state"))
        task = next((each for each in self.by_container.values() if each.known and each.task_id == task_id), None)
        calls = []
        if task is not None and state not in _LIVE:
            task.phase, task.failed = TaskPhase.ENDED, state == "TASK_FAILED"
            task.error = "" if state == _FINISHED else _reason(status, state)
        elif task is not None and state == _RUNNING:
            task.phase = TaskPhase.RUNNING
        elif task is None and state in _LIVE:  # of an agent that was lost, or of a supervisor that has ended
            calls.append(_kill(task_id, agent_id, 0.0))
        if status.get("uuid"):
            ids = {"agent_id": {"value": agent_id}, "task_id": {"value": task_id}}
            calls.append(call("ACKNOWLEDGE", **ids, uuid=status["uuid"]))
        return calls

    def end(self, container_id: int, grace_s: float) -> list[Json]:
        """End a task; Mesos kills its process after `grace_s` seconds."""
        task = self.by_container.get(container_id)
        if task is None or task.phase is TaskPhase.ENDED:
            return []
        if task.phase is TaskPhase.WAITING:
            task.phase, task.error = TaskPhase.ENDED, "it had not started"
            return []
        task.grace_s = grace_s
        return [_kill(task.task_id, task.agent_id, grace_s)]

    def reconcile(self) -> list[Json]:
        """Return the calls after a subscription, and from time to time: Mesos answers with the state of each task.

        The second call asks for tasks that are not known here. Ends are asked for again.
        """
        known = [each for each in self.by_container.values() if each.known]
        asked = [{"task_id": {"value": each.task_id}, "agent_id": {"value": each.agent_id}} for each in known]
        calls = [call("RECONCILE", tasks=asked)] if asked else []
        calls.append(call("RECONCILE", tasks=[]))
        ending = (each for each in known if each.grace_s is not None)
        return calls + [_kill(each.task_id, each.agent_id, each.grace_s or 0.0) for each in ending]


def _id(status: Json, name: str) -> str:
    return str(fields(status.get(name)).get("value") or "")


def _kill(task_id: str, agent_id: str, grace_s: float) -> Json:
    policy = {"grace_period": {"nanoseconds": round(grace_s * 1_000_000_000)}}
    where = {"agent_id": {"value": agent_id}} if agent_id else {}
    return call("KILL", task_id={"value": task_id}, **where, kill_policy=policy)


def _reason(status: Json, state: str) -> str:
    said = str(status.get("message") or status.get("reason") or state)
    return f"{_LOST[state]}: {said}"[:_MOST] if state in _LOST else f"{said} ({state})"[:_MOST]
