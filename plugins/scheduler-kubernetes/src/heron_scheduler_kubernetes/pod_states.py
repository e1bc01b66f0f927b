"""What Kubernetes says of a Pod, as an observation in its own words. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from heron_scheduler_kit.managed.cluster import Observation
from heron_scheduler_kubernetes.kubernetes_api import Json

__all__ = ["missing_reason", "observation"]

_MOST = 400
_QUIET = ("ContainerCreating", "PodInitializing")  # a start that goes on


def observation(pod: Json) -> Observation:
    """Return the observation of a Pod."""
    status, spec = _fields(pod.get("status")), _fields(pod.get("spec"))
    container = next(iter(_list(status.get("containerStatuses"))), {})
    state, last = _fields(container.get("state")), _fields(container.get("lastState"))
    reasons = [
        _words(_fields(state.get("waiting"))) if "waiting" in state else "",
        _ended(_fields(state.get("terminated") or last.get("terminated"))),
        _words(status),  # Evicted, NodeLost
        _unscheduled(_list(status.get("conditions"))),
    ]
    reason = next((each for each in reasons if each and each not in _QUIET), "")
    return Observation("running" in state, str(spec.get("nodeName") or ""), reason)


def missing_reason(events: Iterable[Json], name: str) -> str:
    """Return why a StatefulSet does not create its Pods, from the last event about it; a quota, for example."""
    told = [each for each in events if each.get("type") == "Warning" and _is_about(each, name)]
    told.sort(key=lambda each: str(each.get("lastTimestamp") or each.get("eventTime") or ""))
    return str(told[-1].get("message"))[:_MOST] if told else ""


def _is_about(event: Json, name: str) -> bool:
    return _fields(event.get("involvedObject")).get("name") == name


def _words(fields: Json) -> str:
    reason, message = str(fields.get("reason") or ""), str(fields.get("message") or "")
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


def _fields(found: object) -> Json:
    return dict(found) if isinstance(found, Mapping) else {}


def _list(found: object) -> list[Json]:
    return [_fields(each) for each in found] if isinstance(found, list) else []
