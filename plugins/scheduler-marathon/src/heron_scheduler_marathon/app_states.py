"""What Marathon says of apps, tasks, deployments and its queue, as observations in its own words. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from heron_scheduler_kit.managed.cluster import Observation
from heron_scheduler_kit.managed.rest_api import Json, fields, items

__all__ = ["affected", "creates", "holder", "is_unreachable", "observation", "queue_reason"]

_MOST = 400
_RUNS = frozenset({"TASK_RUNNING"})
_UNREACHABLE = frozenset({"TASK_UNREACHABLE", "TASK_UNREACHABLE_INACTIVE"})


def observation(app: Json, queue: Iterable[Json], last_words: str = "") -> Observation:
    """Return the observation of the one container of an app.

    `queue` has what Marathon has not placed. `last_words` are those of its last process.
    """
    tasks = items(app.get("tasks"))
    up = next((each for each in tasks if each.get("state") in _RUNS), None)
    last = up or (tasks[0] if tasks else {})
    reasons = [_last_failure(app), last_words]
    if up is None:
        unreachable = [f"agent {each.get('host')} is unreachable" for each in tasks if is_unreachable(each)]
        mine = [each for each in queue if fields(each.get("app")).get("id") == app.get("id")]
        reasons += [*unreachable, *map(queue_reason, mine)]  # what holds now comes last
    host = str(last.get("host") or "")
    return Observation(up is not None, host, "; ".join(filter(None, reasons))[:_MOST], host)


def queue_reason(entry: Json) -> str:
    """Return why Marathon has not placed an app; "" while it has seen no offer that it could not use."""
    left_s = fields(entry.get("delay")).get("timeLeftSeconds")
    if isinstance(left_s, int) and left_s > 0:
        return f"marathon waits {left_s} s before the next start"
    summary = fields(entry.get("processedOffersSummary"))
    steps = items(summary.get("rejectSummaryLastOffers"))
    declined = [
        f"{each.get('reason')}: {each.get('declined')} of {each.get('processed')}"
        for each in steps
        if each.get("declined")
    ]
    if declined:
        return f"no agent fits ({', '.join(declined)} offers declined)"
    return "" if summary.get("processedOffersCount") else "no agent has offered resources"


def is_unreachable(task: Json) -> bool:
    """Return whether Mesos has lost the agent of a task."""
    return task.get("state") in _UNREACHABLE


def affected(deployment: Json) -> frozenset[str]:
    """Return the apps that a deployment changes."""
    found = deployment.get("affectedApps")
    return frozenset(map(str, found)) if isinstance(found, list) else frozenset()


def creates(deployment: Json) -> bool:
    """Return whether a deployment starts new apps, and does nothing else."""
    actions = [each for step in items(deployment.get("steps")) for each in items(step.get("actions"))]
    kinds = {str(each.get("action") or each.get("type")) for each in actions}
    return "StartApplication" in kinds and kinds <= {"ResolveArtifacts", "ScaleApplication", "StartApplication"}


def holder(deployment: Json) -> str:
    """Return the name of a deployment for people."""
    return f"deployment {deployment.get('id')} of {', '.join(sorted(affected(deployment)))}"


def _last_failure(app: Json) -> str:
    last = fields(app.get("lastTaskFailure"))
    if not last:
        return ""
    return f"{last.get('state')} on {last.get('host')}: {last.get('message')}"
