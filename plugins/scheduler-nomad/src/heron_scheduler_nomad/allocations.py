"""What Nomad says of the allocations of a job, as observations in its own words. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from heron_scheduler_kit.managed.cluster import Observation
from heron_scheduler_kit.managed.rest_api import Json, fields, items
from heron_scheduler_nomad.job_spec import TASK

__all__ = ["is_left", "newest", "observation", "placement_failure"]

_MOST = 400
_LIVE = frozenset({"pending", "running", "unknown"})
_ENDS = frozenset(
    {
        "Driver Failure",
        "Failed Artifact Download",
        "Failed Validation",
        "Setup Failure",
        "Task hook failed",
        "Terminated",
    }
)
_QUIET = frozenset({"alloc not needed due to job update", "alloc not needed as job is stopped"})


def is_left(allocation: Json) -> bool:
    """Return whether an allocation may still have processes."""
    return allocation.get("ClientStatus") in _LIVE


def newest(allocations: Iterable[Json]) -> Mapping[str, Json]:
    """Return the last allocation of each group."""
    ordered = sorted(allocations, key=lambda each: int(str(each.get("CreateIndex") or 0)))
    return {str(each.get("TaskGroup")): each for each in ordered}


def observation(place: str, allocations: Iterable[Json]) -> Observation:
    """Return the observation of a place from all allocations of its job."""
    mine = [each for each in allocations if each.get("TaskGroup") == place]
    last = newest(mine).get(place, {})
    up = any(map(_is_up, mine))
    name = str(last.get("NodeName") or "")
    return Observation(up, name, _reason(last), name)


def placement_failure(evaluations: Iterable[Json], place: str) -> str:
    """Return why no client takes a group, in the words of ``nomad job status``; "" if nothing is known."""
    ordered = sorted(evaluations, key=lambda each: int(str(each.get("CreateIndex") or 0)))
    failures = [fields(fields(each.get("FailedTGAllocs")).get(place)) for each in ordered]
    found = next((each for each in reversed(failures) if each), None)
    return "; ".join(_exclusions(found))[:_MOST] if found else ""


def _exclusions(metrics: Json) -> list[str]:
    said = [] if metrics.get("NodesEvaluated") else ["No nodes were eligible for evaluation"]
    for center, nodes in fields(metrics.get("NodesAvailable")).items():
        if not nodes:
            said.append(f'No nodes are available in datacenter "{center}"')
    for kind in ("Class", "Constraint"):
        for name, nodes in fields(metrics.get(f"{kind}Filtered")).items():
            said.append(f'{kind} "{name}": {nodes} nodes excluded by filter')
    for kind in ("Class", "Dimension"):
        for name, nodes in fields(metrics.get(f"{kind}Exhausted")).items():
            said.append(f'{kind} "{name}" exhausted on {nodes} nodes')
    quota = metrics.get("QuotaExhausted")
    said += [f'Quota limit hit "{each}"' for each in (quota if isinstance(quota, list) else ())]
    return said


def _is_up(allocation: Json) -> bool:
    return allocation.get("ClientStatus") == "running" and _task(allocation).get("State") == "running"


def _reason(allocation: Json) -> str:
    events = [each for each in items(_task(allocation).get("Events")) if each.get("Type") in _ENDS]
    if events:
        return f"{events[-1].get('Type')}: {events[-1].get('DisplayMessage')}"[:_MOST]
    if allocation.get("ClientStatus") in {"lost", "failed", "unknown"}:
        said = allocation.get("DesiredDescription"), allocation.get("ClientDescription")
        return next((str(each)[:_MOST] for each in said if each and each not in _QUIET), "")
    return ""


def _task(allocation: Json) -> Json:
    return fields(fields(allocation.get("TaskStates")).get(TASK))
