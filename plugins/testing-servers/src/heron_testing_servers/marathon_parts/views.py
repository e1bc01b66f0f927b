"""What a client of Marathon sees: apps, groups, tasks and deployments, with what it asks to embed."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from heron_testing_servers.http_service import Request
from heron_testing_servers.marathon_parts.apps import is_in, parent_of
from heron_testing_servers.marathon_parts.orchestrator import Orchestrator
from heron_testing_servers.marathon_parts.root import Rights

__all__ = ["MarathonViews", "embeds"]

Json = dict[str, Any]

_SHOWN = ("id", "appId", "host", "slaveId", "ports", "servicePorts", "ipAddresses", "state", "version", "stagedAt")


class MarathonViews:
    """Reads the state, whose lock is held."""

    def __init__(self, orchestrator: Orchestrator) -> None:
        self._state = orchestrator.state.document
        self._tasks = orchestrator.tasks

    def apps(self, request: Request, rights: Rights, base: str) -> list[Json]:
        """Return the apps below a group that a user may see and the query selects."""
        asked, wanted = request.query, embeds(request, "apps.") | embeds(request, "group.apps.")
        label = asked.get("label", "")
        found = []
        for name, app in self._state["apps"].items():
            right = rights.has("view", name) and is_in(name, base) and asked.get("id", "") in name
            if right and asked.get("cmd", "") in app.get("cmd", "") and _has_labels(app["labels"], label):
                found.append(self.app(app, wanted))
        return found

    def group(self, name: str, request: Request, rights: Rights) -> Json:
        """Return a group with what the query embeds."""
        wanted = embeds(request, "group.")
        state = self._state
        shown = {**state["groups"][name], "apps": [], "groups": [], "pods": []}
        if not wanted or any(each.startswith("apps") for each in wanted):
            direct = [
                app for each, app in state["apps"].items() if parent_of(each) == name and rights.has("view", each)
            ]
            shown["apps"] = [self.app(each, embeds(request, "group.apps.")) for each in direct]
        if not wanted or "groups" in wanted:
            children = [each for each in state["groups"] if each != "/" and parent_of(each) == name]
            shown["groups"] = [self.group(each, request, rights) for each in children if rights.has("view", each)]
        return shown

    def app(self, app: Json, wanted: set[str]) -> Json:
        """Return an app with its counts and what is embedded."""
        tasks = self._tasks.of(app["id"])
        running = [each for each in tasks if each["state"] == "TASK_RUNNING"]
        health = [each["health"].values() for each in running if each["health"]]
        counts = {
            "tasksStaged": sum(each["state"] in {"TASK_STAGING", "TASK_STARTING"} for each in tasks),
            "tasksRunning": len(running),
            "tasksHealthy": sum(all(check["alive"] for check in each) for each in health),
            "tasksUnhealthy": sum(not all(check["alive"] for check in each) for each in health),
        }
        shown = {**app, "ports": [each["port"] for each in app["portDefinitions"]], **counts}
        deployments = self._state["deployments"].values()
        shown["deployments"] = [{"id": each["id"]} for each in deployments if app["id"] in each["affectedApps"]]
        if wanted & {"tasks", "failures"}:
            shown["tasks"] = [self.task(each) for each in tasks]
        if "readiness" in wanted:
            shown["readinessCheckResults"] = self._readiness(app)
        failure = self._state["failures"].get(app["id"])
        if wanted & {"lastTaskFailure", "failures"} and failure:
            shown["lastTaskFailure"] = failure
        return shown

    def _readiness(self, app: Json) -> list[Json]:
        return [
            {
                "name": check.get("name", "readinessCheck"),
                "taskId": task["id"],
                "ready": task["ready"].get(str(index), False),
            }
            for task in self._tasks.of(app["id"])
            for index, check in enumerate(app["readinessChecks"])
        ]

    def task(self, task: Json) -> Json:
        """Return a task."""
        shown = {each: task[each] for each in _SHOWN}
        results = list(task["health"].values())
        return {**shown, "startedAt": task.get("startedAt"), **({"healthCheckResults": results} if results else {})}

    def deployment(self, deployment: Json) -> Json:
        """Return a deployment."""
        steps, number = deployment["steps"], deployment["step"]
        actions = copy.deepcopy(steps[number]["actions"]) if number < len(steps) else []
        for each in actions:
            app = self._state["apps"].get(each["app"])
            each["readinessCheckResults"] = self._readiness(app) if app else []
        shown = {each: deployment[each] for each in ("id", "version", "affectedApps", "affectedPods", "steps")}
        return {**shown, "currentActions": actions, "currentStep": number + 1, "totalSteps": len(steps)}


def embeds(request: Request, prefix: str) -> set[str]:
    """Return what a query embeds, without a prefix."""
    return {each.removeprefix(prefix) for each in request.queries.get("embed", ()) if each.startswith(prefix)}


def _has_labels(labels: Mapping[str, str], selector: str) -> bool:
    for each in filter(None, (part.strip() for part in selector.split(","))):
        name, equal, value = each.partition("==")
        if name not in labels or (equal and labels[name] != value):
            return False
    return True
