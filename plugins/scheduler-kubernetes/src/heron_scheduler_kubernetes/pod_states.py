"""What Kubernetes says of a Pod, as an observation in its own words. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from heron_scheduler_kit.managed.cluster import Observation
from heron_scheduler_kit.managed.rest_api import Json, fields, items

__all__ = ["missing_reason", "observation"]

_MOST = 400
_QUIET = ("ContainerCreating", "PodInitializing")  # a start that goes on


def observation(pod: Json) -> Observation:
    """Return the observation of a Pod."""
    status, spec = fields(pod.get("status")), fields(pod.get("spec"))
    container = next(iter(items(status.get("containerStatuses"))), {})
    state, last = fields(container.get("state")), fields(container.get("lastState"))
    waiting = fields(state.get("waiting"))
    begins_again = waiting.get("reason") == "CrashLoopBackOff"  # the end before says more
    reasons = [
        "" if begins_again else _words(waiting),
        _ended(fields(state.get("terminated") or last.get("terminated"))),
        _words(status),  # Evicted, NodeLost
        _unscheduled(items(status.get("conditions"))),
    ]
    reason = next((each for each in reasons if each and each not in _QUIET), "")
    node = str(spec.get("nodeName") or "")
    return Observation("running" in state, node, reason, node)


def missing_reason(events: Iterable[Json], name: str) -> str:
    """Return why a StatefulSet does not create its Pods, from the last warning about it; a quota, for example."""
    told = [each for each in events if fields(each.get("involvedObject")).get("name") == name]
    told.sort(key=lambda each: str(each.get("lastTimestamp") or each.get("eventTime") or ""))
    return str(told[-1].get("message"))[:_MOST] if told else ""


def _words(found: Json) -> str:
    reason, message = str(found.get("reason") or ""), str(found.get("message") or "")
    return ": ".join(each for each in (reason, message) if each)[:_MOST]


def _ended(terminated: Json) -> str:
    if not terminated:
        return ""
    reason, code = str(terminated.get("reason") or "Error"), terminated.get("exitCode")
    last = str(terminated.get("message") or "").strip().splitlines()[-1:] or [""]
    return f"{reason}, exit code {code}" + (f": {last[0]:.{_MOST}}" if last[0] else "")


def _unscheduled(conditions: Iterable[Json]) -> str:
    waits = (each for each in conditions if each.get("type") == "PodScheduled" and each.get("status") == "False")
    return next(map(_words, waits), "")
