"""Reads services as YARN shows them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from heron_scheduler_kit.managed.cluster import Observation
from heron_scheduler_kit.managed.rest_api import Json, items
from heron_scheduler_yarn.service_spec import COMPONENT

__all__ = ["YarnContainer", "containers_of", "diagnostics", "is_live", "observation", "printed_lines"]

_ENDED = frozenset({"FINISHED", "FAILED", "KILLED"})
_UP = frozenset({"READY", "RUNNING_BUT_UNREADY"})
_MOST = 300
_LATER = "waiting for display"  # the first request begins the record
_BEGIN, _END = "LogContents:", "End of LogType:"


@dataclass(frozen=True, slots=True)
class YarnContainer:
    """A container of YARN: its id, the host and the place that it runs for, and its state."""

    container_id: str
    place: str
    host: str
    state: str


def containers_of(service: Json) -> tuple[YarnContainer, ...]:
    """Return the containers of a service, the newest of a place last."""
    return tuple(
        YarnContainer(
            str(each["id"]),
            str(component["name"]).removeprefix(COMPONENT),
            str(each.get("bare_host") or each.get("hostname") or ""),
            str(each.get("state", "")),
        )
        for component in items(service.get("components"))
        for each in sorted(items(component.get("containers")), key=lambda each: int(str(each.get("launch_time", 0))))
    )


def is_live(application: Json) -> bool:
    """Return whether an application has not ended."""
    return application.get("state") not in _ENDED


def observation(place: str, service: Json, why: Callable[[YarnContainer | None], Iterable[str]]) -> Observation:
    """Return how YARN sees a place of a service.

    `why` returns what else YARN says about a place that is not up, from its last container.
    """
    last = next((each for each in reversed(containers_of(service)) if each.place == place), None)
    if last is not None and last.state in _UP:
        return Observation(up=True, where=last.host)
    words = [f"service {service.get('name')} is {service.get('state', 'unknown')}"]
    if last is not None:
        words.append(f"container {last.container_id} on {last.host} is {last.state}")
    words += [" ".join(each.split())[:_MOST] for each in (str(service.get("diagnostics") or ""), *why(last))]
    return Observation(up=False, where=last.host if last else "", reason="; ".join(filter(None, words)))


def diagnostics(activities: object) -> list[str]:
    """Return why the scheduler of YARN gives an application nothing, from its activities; each reason once."""
    if isinstance(activities, list):
        said = [each for one in activities for each in diagnostics(one)]
    elif isinstance(activities, dict):
        inner = (diagnostics(activities.get(key)) for key in ("appActivities", "allocations", "children"))
        said = [str(activities.get("diagnostic", "")), *(each for some in inner for each in some)]
    else:
        said = []
    return [each for each in dict.fromkeys(said) if each not in {"", _LATER}]


def printed_lines(log: str) -> list[str]:
    """Return the lines of a log as a node manager shows it: with words of its own before and after them."""
    lines = log.splitlines()
    begin = lines.index(_BEGIN) + 1 if _BEGIN in lines else 0
    end = next((number for number, each in enumerate(lines) if number >= begin and each.startswith(_END)), len(lines))
    return lines[begin:end]
