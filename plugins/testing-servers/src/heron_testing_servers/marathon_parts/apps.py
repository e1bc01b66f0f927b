"""What Marathon decides about apps: their ids and validity, the offers that fit, and the steps of a deployment."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

__all__ = [
    "REASONS",
    "Agent",
    "Refusal",
    "checked_app",
    "is_in",
    "is_upgrade",
    "kept_and_launched",
    "parent_of",
    "path_id",
    "plan",
    "rejection",
]

Json = dict[str, Any]

REASONS = (
    "UnfulfilledRole",
    "UnfulfilledConstraint",
    "InsufficientCpus",
    "InsufficientMemory",
    "InsufficientDisk",
    "InsufficientPorts",
)
"""Why an offer is declined, in the order in which Marathon looks."""

_SEGMENT = re.compile(r"(([a-z0-9]|[a-z0-9][a-z0-9\-]*[a-z0-9])\.)*([a-z0-9]|[a-z0-9][a-z0-9\-]*[a-z0-9])|\.|\.\.")
_TYPES: dict[str, tuple[type | tuple[type, ...], object]] = {
    "acceptedResourceRoles": (list, ["*"]),
    "args": (list, None),
    "backoffFactor": ((int, float), 1.15),
    "backoffSeconds": (int, 1),
    "cmd": (str, None),
    "constraints": (list, []),
    "container": (dict, None),
    "cpus": ((int, float), 1),
    "dependencies": (list, []),
    "disk": ((int, float), 0),
    "env": (dict, {}),
    "executor": (str, ""),
    "fetch": (list, []),
    "healthChecks": (list, []),
    "instances": (int, 1),
    "killSelection": (str, "YOUNGEST_FIRST"),
    "labels": (dict, {}),
    "maxLaunchDelaySeconds": (int, 300),
    "mem": ((int, float), 128),
    "networks": (list, [{"mode": "host"}]),
    "portDefinitions": (list, [{"port": 0, "protocol": "tcp"}]),
    "readinessChecks": (list, []),
    "requirePorts": (bool, False),
    "secrets": (dict, {}),
    "taskKillGracePeriodSeconds": (int, None),
    "unreachableStrategy": ((dict, str), {"inactiveAfterSeconds": 0, "expungeAfterSeconds": 0}),
    "upgradeStrategy": (dict, {"maximumOverCapacity": 1, "minimumHealthCapacity": 1}),
    "user": (str, None),
}
_LEAST = {"backoffFactor": 1, "backoffSeconds": 0, "cpus": 0.001, "disk": 0, "instances": 0, "mem": 0}
_OPERATORS = {
    "UNIQUE": False,
    "CLUSTER": None,
    "GROUP_BY": None,
    "LIKE": True,
    "UNLIKE": True,
    "MAX_PER": True,
    "IS": True,
}
_NO_SECRETS = "Feature secrets is not enabled. Enable with --enable_features secrets)"


class Refusal(Exception):
    """An answer that refuses a request: its status, and the document with the message."""

    def __init__(self, status: int, message: str, **more: object) -> None:
        super().__init__(message)
        self.status = status
        self.document = {"message": message, **more}


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent of Mesos, and what it offers."""

    host: str
    id: str
    cpus: float
    mem: float
    first_port: int
    last_port: int
    disk: float = 100_000.0
    role: str = "*"
    attributes: Mapping[str, str] = field(default_factory=dict)


def path_id(text: str, base: str = "/") -> str:
    """Return an id as an absolute path; a relative one begins in the group `base`. Raises Refusal when it is none."""
    parts: list[str] = []
    for each in (text if text.startswith("/") else f"{base}/{text}").split("/"):
        if each and not _SEGMENT.fullmatch(each):
            _refuse_value("/id", f"must fully match regular expression '^{_SEGMENT.pattern}$'")
        if each == "..":
            parts = parts[:-1]
        elif each and each != ".":
            parts.append(each)
    return "/" + "/".join(parts)


def parent_of(name: str) -> str:
    """Return the id of the group of an app or a group."""
    return name.rpartition("/")[0] or "/"


def is_in(name: str, base: str) -> bool:
    """Return whether an app or a group is a group or below it."""
    return name == base or name.startswith(base.rstrip("/") + "/")


def checked_app(config: Any, base: str, at: str = "") -> Json:  # noqa: ANN401 - a client may send anything
    """Return an app with all defaults; its id is in the group `base`.

    Raises:
        Refusal: 400 for a document of another shape, 422 for values that break a rule.
    """
    if not isinstance(config, dict) or not isinstance(config.get("id"), str):
        _refuse_shape(f"{at}/id", "error.expected.jsstring")
    for name, value in config.items():
        kind = _TYPES.get(name, (object, None))[0]
        if value is not None and (not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool)):
            _refuse_shape(f"{at}/{name}", f"error.expected.{name}")
    given = {name: value for name, value in config.items() if value is not None}
    if "ports" in given:
        given.setdefault("portDefinitions", [{"port": port, "protocol": "tcp"} for port in given.pop("ports")])
    known = {name: default for name, (_, default) in _TYPES.items() if default is not None}
    app: Json = {**known, **{name: value for name, value in given.items() if name in _TYPES}}
    app["id"] = path_id(config["id"], base)
    app["dependencies"] = [path_id(each, base) for each in app["dependencies"]]
    app["upgradeStrategy"] = {**known["upgradeStrategy"], **app["upgradeStrategy"]}  # type: ignore[dict-item]
    for place, error in _faults(app, base):
        _refuse_value(f"{at}{place}", error)
    return app


def _faults(app: Json, base: str) -> Iterator[tuple[str, str]]:
    if app["id"] == base or not is_in(app["id"], base):
        yield "/id", f"identifier {app['id']} is not child of {base}. Hint: use relative paths."
    image = (app.get("container") or {}).get("docker")
    if ("cmd" in app) == ("args" in app) and not (image and "cmd" not in app):
        yield "/", "AppDefinition must either contain one of 'cmd' or 'args', and/or a 'container'."
    for name, least in _LEAST.items():
        if app[name] < least:
            yield f"/{name}", f"got {app[name]}, expected {least} or more"
    if app["secrets"] or any(isinstance(value, dict) for value in app["env"].values()):
        yield "/env", _NO_SECRETS
    for name, value in app["env"].items():
        if not isinstance(value, str):
            yield f"/env({name})", "error.expected.jsstring"
    yield from _faults_of_constraints(app)
    yield from _faults_of_strategies(app)


def _faults_of_constraints(app: Json) -> Iterator[tuple[str, str]]:
    for index, (_, operator, *value) in enumerate(app["constraints"]):
        if operator not in _OPERATORS:
            yield f"/constraints({index})", f"Operator must be one of the following {', '.join(_OPERATORS)}"
        elif _OPERATORS[operator] is not None and bool(value) != _OPERATORS[operator]:
            yield f"/constraints({index})", f"Value {'must' if _OPERATORS[operator] else 'must not'} be specified"


def _faults_of_strategies(app: Json) -> Iterator[tuple[str, str]]:
    for name, value in app["upgradeStrategy"].items():
        if not 0 <= value <= 1:
            yield f"/upgradeStrategy/{name}", f"got {value}, expected between 0.0 and 1.0"
    given = app["unreachableStrategy"]
    if given != "disabled" and given.get("inactiveAfterSeconds", 0) > given.get("expungeAfterSeconds", 0):
        yield "/unreachableStrategy", "expungeAfterSeconds must be greater or equal to inactiveAfterSeconds"
    ports = {each.get("name") for each in app["portDefinitions"]}
    for index, check in enumerate(app["readinessChecks"]):
        if check.get("portName", "http-api") not in ports:
            yield f"/readinessChecks({index})/portName", "portName must be defined in the portDefinitions"


def _refuse_shape(path: str, error: str) -> NoReturn:
    raise Refusal(400, "Invalid JSON", details=[{"path": path, "errors": [error]}])


def _refuse_value(path: str, error: str) -> NoReturn:
    raise Refusal(422, "Object is not valid", details=[{"path": path, "errors": [error]}])


def is_upgrade(old: Json, new: Json) -> bool:
    """Return whether the tasks of an app have to be replaced."""
    unlike = {"instances", "version", "versionInfo"}
    names = (old.keys() | new.keys()) - unlike
    return any(old.get(name) != new.get(name) for name in names)


def plan(old: Mapping[str, Json], new: Mapping[str, Json], restarted: Iterable[str] = ()) -> list[list[Json]]:
    """Return the steps from the apps `old` to the apps `new`, by their ids, in the order of their dependencies."""
    added = sorted(new.keys() - old.keys())
    work = dict.fromkeys(added, "ScaleApplication")
    for each in new.keys() & old.keys():
        if each in restarted or is_upgrade(old[each], new[each]):
            work[each] = "RestartApplication"
        elif old[each]["instances"] != new[each]["instances"]:
            work[each] = "ScaleApplication"
    steps = [
        [{"action": "StopApplication", "app": each} for each in sorted(old.keys() - new.keys())],
        [{"action": "StartApplication", "app": each} for each in added],
    ]
    left = dict(work)
    while left:
        ready = sorted(each for each in left if not left.keys() & set(new[each]["dependencies"]))
        step = ready or sorted(left)  # a circle is one step
        steps.append([{"action": left.pop(each), "app": each} for each in step])
    return [each for each in steps if each]


def kept_and_launched(app: Json, new: int, ready: int, old: int, total: int, *, upgrading: bool) -> tuple[int, int]:
    """Return how many old tasks are kept, and how many new ones are launched now.

    Args:
        app: the new definition.
        new: its tasks, and `ready` those of them that serve.
        old: the tasks of the former definition that no order ends yet.
        total: all tasks of the app that have not ended.
        upgrading: whether one of them is of a former definition.
    """
    target, strategy = app["instances"], app["upgradeStrategy"]
    if not upgrading:
        return 0, max(0, target - total)
    least = math.ceil(target * strategy["minimumHealthCapacity"])
    most = target + math.floor(target * strategy["maximumOverCapacity"])
    if least == target == most:
        most += 1  # otherwise nothing could begin
    return min(old, max(0, least - ready)), max(0, min(target - new, most - total))


def rejection(app: Json, agent: Agent, used: Json, fellows: list[Json], agents: Mapping[str, Agent]) -> str | None:
    """Return the first reason why an agent cannot run one more task of an app, or None.

    Args:
        app: the app.
        agent: the agent.
        used: the sums of ``cpus``, ``mem`` and ``disk`` of its tasks, and their ``ports``.
        fellows: the tasks of the app, with their hosts.
        agents: all agents by their hosts.
    """
    if agent.role not in app["acceptedResourceRoles"]:
        return "UnfulfilledRole"
    if not all(_holds(each, agent, fellows, agents) for each in app["constraints"]):
        return "UnfulfilledConstraint"
    for name, reason in (("cpus", "InsufficientCpus"), ("mem", "InsufficientMemory"), ("disk", "InsufficientDisk")):
        if used[name] + app[name] > getattr(agent, name):
            return reason
    if app["requirePorts"]:
        wanted = {each["port"] for each in app["portDefinitions"]}
        fits = not wanted & set(used["ports"]) and all(agent.first_port <= each <= agent.last_port for each in wanted)
    else:
        fits = agent.last_port - agent.first_port + 1 - len(used["ports"]) >= len(app["portDefinitions"])
    return None if fits else "InsufficientPorts"


def _holds(constraint: list[str], agent: Agent, fellows: list[Json], agents: Mapping[str, Agent]) -> bool:
    name, operator, *rest = constraint
    value = rest[0] if rest else ""

    def of(host: str) -> str | None:
        return host if name in {"hostname", "@hostname"} else agents[host].attributes.get(name)

    own = of(agent.host)
    if operator == "UNLIKE":
        return own is None or not re.fullmatch(value, own)
    if own is None:
        return False
    counts: dict[str | None, int] = {}
    for each in fellows:
        counts[of(each["host"])] = counts.get(of(each["host"]), 0) + 1
    rules: dict[str, Callable[[], bool]] = {
        "UNIQUE": lambda: not counts.get(own),
        "CLUSTER": lambda: own == value if value else not counts.keys() - {own},
        "GROUP_BY": lambda: (
            counts.get(own, 0)
            <= min((counts.get(each, 0) for each in {of(host) for host in agents} - {None}), default=0)
        ),
        "LIKE": lambda: bool(re.fullmatch(value, own)),
        "MAX_PER": lambda: counts.get(own, 0) < int(value),
        "IS": lambda: own == value,
    }
    return rules[operator]()
