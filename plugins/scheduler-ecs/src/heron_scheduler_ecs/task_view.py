"""What ECS says of tasks and services, as observations in its own words. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from heron_scheduler_ecs.task_size import TaskSize
from heron_scheduler_kit.managed.cluster import Observation
from heron_scheduler_kit.managed.managed_job import ContainerRequest
from heron_scheduler_kit.managed.rest_api import Json, items

__all__ = ["by_service", "is_left", "newest", "observation", "waits_for"]

_MOST = 400
_GROUP = "service:"
_OVER = frozenset({"DEPROVISIONING", "STOPPED", "DELETED"})  # its containers have ended, only its network may be left
_TROUBLE = ("unable to", "failed")
_DONE = frozenset({"INACTIVE", "DRAINING"})


def is_left(task: Json) -> bool:
    """Return whether a task may still have processes, or get them."""
    return task.get("lastStatus") not in _OVER


def by_service(tasks: Iterable[Json]) -> Mapping[str, list[Json]]:
    """Return the tasks by the name of their service, the newest last."""
    found: dict[str, list[Json]] = {}
    for each in sorted(tasks, key=lambda each: str(each.get("createdAt", ""))):
        found.setdefault(str(each.get("group")).removeprefix(_GROUP), []).append(each)
    return found


def newest(tasks: Sequence[Json]) -> Json:
    """Return the newest task of a service that runs, or else the newest one; an empty one without tasks."""
    running = [each for each in tasks if each.get("lastStatus") == "RUNNING"]
    return (running or tasks or [{}])[-1]


def observation(request: ContainerRequest, tasks: Sequence[Json], service: Json) -> Observation:
    """Return the observation of a place; `service` may be empty while a task runs."""
    last = newest(tasks)
    if last.get("lastStatus") == "RUNNING":
        return Observation(True, _where(request, last))
    reasons = [_stopped(last), waits_for(service) if not last or not is_left(last) else ""]
    return Observation(False, "", "; ".join(filter(None, reasons)))


def waits_for(service: Json) -> str:
    """Return why a service starts no task: the end of its deployment, or its last event that names trouble."""
    for each in items(service.get("deployments")):
        if each.get("rolloutState") == "FAILED":
            return str(each.get("rolloutStateReason") or "the deployment failed")[:_MOST]
    if service.get("status") in _DONE:
        return f"service {service.get('serviceName')} is {service.get('status')}"
    said = (str(each.get("message", "")) for each in items(service.get("events")))
    return next((each[:_MOST] for each in said if any(word in each for word in _TROUBLE)), "")


def _where(request: ContainerRequest, task: Json) -> str:
    """Return zone, address and size of a running task."""
    details = [each for attachment in items(task.get("attachments")) for each in items(attachment.get("details"))]
    addresses = [str(each.get("value")) for each in details if each.get("name") == "privateIPv4Address"]
    size = TaskSize(int(str(task.get("cpu") or 0)), int(str(task.get("memory") or 0)))
    parts = str(task.get("availabilityZone") or ""), *addresses, size.text(request) if size.cpu_units else ""
    return ", ".join(filter(None, parts))


def _stopped(task: Json) -> str:
    """Return why a task has stopped: ECS's reason, and that of its container."""
    reasons = [str(task.get("stoppedReason") or "")]
    for each in items(task.get("containers")):
        code = each.get("exitCode")
        reasons += [str(each.get("reason") or ""), "" if code in {None, 0} else f"exit code {code}"]
    return "; ".join(dict.fromkeys(each[:_MOST] for each in reasons if each))
