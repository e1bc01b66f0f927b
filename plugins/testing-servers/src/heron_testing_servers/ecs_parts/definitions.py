"""Task definitions of ECS: what a valid one is, and the errors of the API."""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

__all__ = ["EcsError", "checked_definition", "refuse"]

Json = dict[str, Any]

_SIZES = {
    256: range(512, 2049, 512),
    512: range(1024, 4097, 1024),
    1024: range(2048, 8193, 1024),
    2048: range(4096, 16385, 1024),
    4096: range(8192, 30721, 1024),
    8192: range(16384, 61441, 4096),
    16384: range(32768, 122881, 8192),
}
"""The memory in MiB that Fargate has for each number of CPU units."""
_MOST_BYTES = 64 * 1024
_NO_MEMORY = "Invalid setting for container '{}'. At least one of 'memory' or 'memoryReservation' must be specified."
_NO_SIZE = "No Fargate configuration exists for given values: {} CPU, {} memory."
_NEEDS_ROLE = "Fargate requires task definition to have execution role ARN to support {}."


class EcsError(Exception):
    """An exception of the API: its type and message."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def refuse(kind: str, message: str) -> NoReturn:
    """Raise an exception of the API."""
    raise EcsError(kind, message)


def checked_definition(given: Json) -> Json:
    """Return a task definition with the defaults of the API.

    Raises:
        EcsError: for one that breaks a rule.
    """
    fargate = "FARGATE" in given.get("requiresCompatibilities", ())
    if (length := len(json.dumps(given))) > _MOST_BYTES:
        refuse("ClientException", f"Actual length: '{length}'. Max allowed length is '{_MOST_BYTES}' bytes.")
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,255}", given["family"]):
        refuse("ClientException", "Family contains invalid characters.")
    if not given.get("containerDefinitions"):
        refuse("ClientException", "Container list cannot be empty.")
    if fargate:
        _check_fargate(given)
    for each in given["containerDefinitions"]:
        if not (given.get("memory") or each.get("memory") or each.get("memoryReservation")):
            refuse("ClientException", _NO_MEMORY.format(each["name"]))
    defaults = {"cpu": 0, "essential": True, "environment": [], "mountPoints": [], "volumesFrom": []}
    containers = [{**defaults, **each} for each in given["containerDefinitions"]]
    compatibilities = ["EC2", "FARGATE"] if fargate else ["EC2"]
    return {"networkMode": "bridge", **given, "containerDefinitions": containers, "compatibilities": compatibilities}


def _check_fargate(given: Json) -> None:
    if given.get("networkMode") != "awsvpc":
        refuse("ClientException", "Fargate only supports network mode 'awsvpc'.")
    for kind in ("cpu", "memory"):
        if kind not in given:
            refuse("ClientException", f"Fargate requires that '{kind}' be defined at the task level.")
    if int(given["memory"]) not in _SIZES.get(int(given["cpu"]), ()):
        refuse("ClientException", _NO_SIZE.format(given["cpu"], given["memory"]))
    for kind, what in (("secrets", "secrets"), ("logConfiguration", "log driver awslogs")):
        if any(each.get(kind) for each in given["containerDefinitions"]) and not given.get("executionRoleArn"):
            refuse("ClientException", _NEEDS_ROLE.format(what))
