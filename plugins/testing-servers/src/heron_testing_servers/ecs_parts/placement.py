"""Where a task of ECS on EC2 runs: sizes, constraints and strategies, as functions over values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Set
from typing import Any

__all__ = ["describe_failure", "place"]

Json = dict[str, Any]

_SEE = "For more information, see the Troubleshooting section of the Amazon ECS Developer Guide."
_NO_FIT = "(service {}) was unable to place a task because no container instance met all of its requirements. "
_NO_CAPACITY = (
    "(service {}) was unable to place a task. Reason: Capacity is unavailable at this time. Please try again later or "
    "in a different availability zone. "
)
_WORDS = {
    "RESOURCE:CPU": "has insufficient CPU units available",
    "RESOURCE:MEMORY": "has insufficient memory available",
    "MemberOf": 'encountered error "MemberOf placement constraint unsatisfied."',
}


def place(
    definition: Json, settings: Json, instances: Mapping[str, Json], tasks: list[Json], definitions: Mapping[str, Json]
) -> tuple[str, str]:
    """Return the name of the instance for a task, or the reason of a failure.

    Args:
        definition: of the task.
        settings: its ``group``, ``placementConstraints`` and ``placementStrategy``.
        instances: those that run, by their names.
        tasks: all tasks that have not stopped.
        definitions: all task definitions, by their names.
    """

    def rank(name: str) -> tuple[int, ...]:
        found = []
        for each in settings.get("placementStrategy", ({"type": "spread", "field": "instanceId"},)):
            here = _field(each, name, instances[name])
            same = {other for other in instances if _field(each, other, instances[other]) == here}
            own = [task for task in tasks if task.get("containerInstanceArn") in same]
            if each["type"] == "binpack":
                found.append(-sum(_size(definitions[task["taskDefinitionArn"]])[1] for task in own))
            else:
                found.append(sum(task["group"] == settings["group"] for task in own))
        return tuple(found)

    reasons = []
    for name in sorted(instances, key=rank):
        own = [each for each in tasks if each.get("containerInstanceArn") == name]
        used = [_size(definitions[each["taskDefinitionArn"]]) for each in own]
        reason = _unfit(definition, settings, instances[name], own, used)
        if not reason:
            return name, ""
        reasons.append(reason)
    return "", max(reasons, key=reasons.count, default="RESOURCE:INSTANCE")


def describe_failure(service: str, reason: str, instances: Iterable[str]) -> str:
    """Return the event of a service whose task has no place."""
    if reason == "RESOURCE:FARGATE":
        return _NO_CAPACITY.format(service) + _SEE
    text = _NO_FIT.format(service)
    if reason == "RESOURCE:INSTANCE":
        return f"{text}Reason: No Container Instances were found in your cluster. {_SEE}"
    closest = next(iter(instances)).rpartition("/")[2]
    return f"{text}The closest matching (container-instance {closest}) {_WORDS[reason]}. {_SEE}"


def _unfit(definition: Json, settings: Json, instance: Json, tasks: list[Json], used: list[tuple[int, int]]) -> str:
    for index, kind in enumerate(("cpu", "memory")):
        if sum(size[index] for size in used) + _size(definition)[index] > instance[kind]:
            return f"RESOURCE:{kind.upper()}"
    groups = {each["group"] for each in tasks}
    for each in (*definition.get("placementConstraints", ()), *settings.get("placementConstraints", ())):
        if each["type"] == "distinctInstance" and any(task["group"] == settings["group"] for task in tasks):
            return "MemberOf"
        if each["type"] == "memberOf" and not _is_member(each["expression"], instance.get("attributes", {}), groups):
            return "MemberOf"
    return ""


def _size(definition: Json) -> tuple[int, int]:
    """The CPU units and the memory in MiB of a task."""
    containers = definition["containerDefinitions"]
    memory = sum(each.get("memory") or each.get("memoryReservation", 0) for each in containers)
    cpu = sum(each.get("cpu", 0) for each in containers)
    return int(definition.get("cpu") or cpu), int(definition.get("memory") or memory)


def _field(strategy: Json, name: str, instance: Json) -> str:
    """The value of an instance that a strategy looks at."""
    field = strategy.get("field", "instanceId").removeprefix("attribute:")
    return name if field in {"instanceId", "host"} else str(instance.get("attributes", {}).get(field))


def _is_member(expression: str, attributes: Json, groups: Set[str]) -> bool:
    """Whether ``attribute:NAME == VALUE``, ``!=``, ``=~`` or ``in [A, B]`` holds; parts are joined by ``and``.

    A part may also be ``task:group == GROUP`` or ``not(task:group == GROUP)``: whether a task of it is there.
    """
    for each in re.split(r"\s+and\s+", expression):
        if group := re.fullmatch(r"\s*(not\()?task:group\s*==\s*([^\s)]+)\)?\s*", each):
            if (group[2] in groups) == bool(group[1]):
                return False
            continue
        parts = re.fullmatch(r"\s*attribute:(\S+)\s*(==|!=|=~|in)\s*(.+?)\s*", each)
        if parts is None:
            return False
        name, operator, value = parts.groups()
        has = str(attributes.get(name, ""))
        values = [one.strip() for one in value.strip("[]").split(",")]
        holds = {"==": has == value, "!=": has != value, "=~": bool(re.fullmatch(value, has)), "in": has in values}
        if not holds[operator]:
            return False
    return True
