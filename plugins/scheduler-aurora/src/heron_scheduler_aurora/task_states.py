"""What Aurora says of tasks and job updates, as observations in its own words. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from heron_scheduler_aurora.aurora_words import ACTIVE, UPDATING, TaskStatus, UpdateStatus
from heron_scheduler_kit.managed.cluster import Observation
from heron_scheduler_kit.managed.rest_api import Json, fields, items

__all__ = [
    "active",
    "instance",
    "is_being_killed",
    "is_updating",
    "observations",
    "task_id",
    "update_name",
    "updates_words",
]

_MOST = 400
_WAITING = frozenset({TaskStatus.PENDING, TaskStatus.THROTTLED, TaskStatus.INIT})
_ENDED_BADLY = frozenset({TaskStatus.FAILED, TaskStatus.LOST, TaskStatus.KILLED, TaskStatus.FINISHED})


def active(tasks: Iterable[Json]) -> dict[int, Json]:
    """Return the tasks that are not over, by their instances."""
    return {instance(each): each for each in tasks if _status(each.get("status")) in ACTIVE}


def instance(task: Json) -> int:
    """Return the instance of a task."""
    return _number(fields(task.get("assignedTask")).get("instanceId"))


def task_id(task: Json) -> str:
    """Return the id of a task."""
    return str(fields(task.get("assignedTask")).get("taskId"))


def observations(tasks: Iterable[Json], pending: Iterable[Json], update: str) -> Mapping[str, Observation]:
    """Return what Aurora knows of each instance.

    `pending` are its reasons why tasks have no host. `update` is what the last job update says; "" if it is over well.
    """
    why = {str(each.get("taskId")): str(each.get("reason")) for each in pending}
    found: dict[str, Observation] = {}
    ordered = sorted(tasks, key=_changed_ms)
    for number in sorted({instance(each) for each in ordered}):
        mine = [each for each in ordered if instance(each) == number]
        last = active(mine).get(number, mine[-1])
        ended = [each for each in mine if _status(each.get("status")) in _ENDED_BADLY]
        up = _status(last.get("status")) is TaskStatus.RUNNING
        reasons = [_ended(ended[-1])] if ended else []
        if not up:
            waits = [_waiting(last, why.get(task_id(last), ""))] if _status(last.get("status")) in _WAITING else []
            reasons += [update, *waits]  # what holds now comes last
        where = str(fields(last.get("assignedTask")).get("slaveHost") or "")
        found[str(number)] = Observation(up, where, "; ".join(filter(None, reasons))[:_MOST], where)
    return found


def is_being_killed(task: Json) -> bool:
    """Return whether a task will be over for good."""
    return _status(task.get("status")) is TaskStatus.KILLING


def is_updating(update: Json) -> bool:
    """Return whether a job update is at work, so that Aurora refuses every other change of the job."""
    return _update_status(update) in UPDATING


def update_name(update: Json) -> str:
    """Return the name of a job update for people."""
    key = fields(update.get("key"))
    return f"job update {key.get('id')} of {update.get('user')} ({_update_status(update).name})"


def updates_words(updates: Iterable[Json]) -> str:
    """Return what the newest job update says if it has not ended well; "" otherwise."""
    newest = max(updates, key=lambda each: _number(fields(each.get("state")).get("createdTimestampMs")), default=None)
    ended_well = newest is None or _update_status(newest) is UpdateStatus.ROLLED_FORWARD
    return "" if newest is None or ended_well else update_name(newest)


def _waiting(task: Json, why: str) -> str:
    status = _status(task.get("status"))
    said = why or _last_message(task)
    return f"{status.name}: {said}" if said else status.name


def _ended(task: Json) -> str:
    host = fields(task.get("assignedTask")).get("slaveHost")
    said = _last_message(task)
    return f"{_status(task.get('status')).name} on {host}" + (f": {said}" if said else "")


def _last_message(task: Json) -> str:
    messages = [str(each.get("message")) for each in items(task.get("taskEvents")) if each.get("message")]
    return messages[-1] if messages else ""


def _changed_ms(task: Json) -> int:
    return max((_number(each.get("timestamp")) for each in items(task.get("taskEvents"))), default=0)


def _status(found: object) -> TaskStatus:
    return TaskStatus(_number(found)) if _number(found) in set(TaskStatus) else TaskStatus.INIT


def _update_status(update: Json) -> UpdateStatus:
    return UpdateStatus(_number(fields(update.get("state")).get("status")))


def _number(found: object) -> int:
    return found if isinstance(found, int) else 0
