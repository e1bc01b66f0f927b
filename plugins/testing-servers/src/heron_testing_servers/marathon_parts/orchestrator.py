"""What Marathon does by itself: it compares the apps that are wanted with the tasks that run.

Every change is in a file before a client hears of it. One thread looks at everything again at each change and when a
time has come. So a restarted Marathon goes on with its deployments and tasks.
"""

from __future__ import annotations

import contextlib
import copy
import queue
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from heron.clock import wall_s
from heron_testing_servers.marathon_parts.apps import REASONS, Agent, kept_and_launched, rejection
from heron_testing_servers.marathon_parts.checks import MarathonChecks
from heron_testing_servers.marathon_parts.cluster import MarathonTasks
from heron_testing_servers.marathon_parts.deployments import Deployments, timestamp
from heron_testing_servers.marathon_parts.root import Root
from heron_testing_servers.reconciled_state import ReconciledState

__all__ = ["Orchestrator"]

Json = dict[str, Any]

_ACTIVE = ("TASK_STAGING", "TASK_STARTING", "TASK_RUNNING", "TASK_KILLING")
_COUNTS = ("processedOffersCount", "unusedOffersCount")
_MAPS = ("apps", "versions", "tasks", "deployments", "delays", "failures", "ended", "users")


class Orchestrator:
    """For use from any thread; who reads `state` has its lock."""

    def __init__(self, folder: Path, owner: int, agents: Iterable[Agent]) -> None:
        root = {"id": "/", "version": timestamp(), "dependencies": []}
        default: Json = {"groups": {"/": root}, "lost": [], "expunged": [], **{each: {} for each in _MAPS}}
        self.state = ReconciledState(folder / "marathon.json", default)
        self.tasks = MarathonTasks(folder, owner, agents, self.state, self.emit)
        self._deployments = Deployments(self.state.document, self.emit)
        self._checks = MarathonChecks(self.state, self.tasks, self.emit)
        self._waiting: dict[str, Json] = {}  # what the queue knows of apps that wait for an agent
        self._listeners: list[queue.SimpleQueue[Json]] = []

    def run(self) -> None:
        """Begin; call it once."""
        with self.state.lock:
            self.tasks.restore()
        self.state.run(self._round)

    @contextlib.contextmanager
    def listening(self) -> Iterator[queue.SimpleQueue[Json]]:
        """Give a queue that gets all events from now on."""
        listener: queue.SimpleQueue[Json] = queue.SimpleQueue()
        with self.state.lock:
            self._listeners.append(listener)
        try:
            yield listener
        finally:
            with self.state.lock:
                self._listeners.remove(listener)

    def emit(self, kind: str, **fields: object) -> None:
        """Tell all listeners of an event."""
        event = {"eventType": kind, "timestamp": timestamp(), **fields}
        for each in self._listeners:
            each.put(event)

    def deploy(self, target: Root, *, force: bool, restarted: Iterable[str] = ()) -> Json:
        """Begin a deployment, as `Deployments.begin`."""
        with self.state.lock:
            made = self._deployments.begin(target, force=force, restarted=restarted)
            self.state.save()
            return made

    def undo(self, name: str, *, force: bool) -> Json | None:
        """Cancel a deployment, and without `force` begin one that undoes its changes."""
        with self.state.lock:
            made = None
            if force:
                self._deployments.cancel(name)
            else:
                made = self._deployments.revert(name)
            self.state.save()
            return made

    def reset_delay(self, app: str) -> None:
        """Let an app launch now."""
        with self.state.lock:
            self.state.document["delays"].pop(app, None)
            self.state.save()

    def add_user(self, secret: str, rights: list[list[str]]) -> None:
        """Add a user with rights: actions, each with a path."""
        with self.state.lock:
            self.state.document["users"][secret] = rights
            self.state.save()

    def queued(self) -> list[Json]:
        """Return the apps that wait for an agent or for the end of their delay."""
        with self.state.lock:
            found = []
            for name, waiting in self._waiting.items():
                left_s = self.state.document["delays"].get(name, {}).get("until_s", 0.0) - wall_s()
                delay = {"timeLeftSeconds": max(0, round(left_s)), "overdue": left_s <= 0}
                found.append({"app": self.state.document["apps"][name], "delay": delay, **copy.deepcopy(waiting)})
            return found

    def _round(self, times: list[float]) -> None:
        self.tasks.expunge_lost(times)
        for name in list(self._waiting):
            if name not in self.state.document["apps"]:
                del self._waiting[name]
        self.tasks.kill(
            [each for each in self.state.document["tasks"].values() if each["appId"] not in self.state.document["apps"]]
        )
        for app in self.state.document["apps"].values():
            if not self._deployments.holds(app["id"]):
                self._compare(app, times)
        for task in list(self.state.document["tasks"].values()):
            self._checks.run(task, times)
        if self._deployments.advance(self._is_done):
            self.state.save()

    def _compare(self, app: Json, times: list[float]) -> None:
        config = app["versionInfo"]["lastConfigChangeAt"]
        alive = [each for each in self.tasks.of(app["id"]) if each["state"] in _ACTIVE or self.tasks.may_return(each)]
        going = [each for each in alive if each["state"] != "TASK_KILLING"]
        new = [each for each in going if each["config"] == config]
        old = [each for each in going if each["config"] != config]
        ready = [each for each in new if self._serves(each, app)]
        upgrading = any(each["config"] != config for each in alive)
        counts = len(new), len(ready), len(old), len(alive)
        kept, launched = kept_and_launched(app, *counts, upgrading=upgrading)
        youngest_first = app["killSelection"] == "YOUNGEST_FIRST"
        surplus = new[app["instances"] :] if youngest_first else new[: max(0, len(new) - app["instances"])]
        self.tasks.kill([*old[kept:], *surplus])
        if launched:
            self._launch(app, launched, times)
        else:
            self._waiting.pop(app["id"], None)

    def _launch(self, app: Json, count: int, times: list[float]) -> None:
        waiting = self._waiting.setdefault(
            app["id"], {"since": timestamp(), "processedOffersSummary": dict.fromkeys(_COUNTS, 0)}
        )
        until_s = self.state.document["delays"].get(app["id"], {}).get("until_s", 0.0)
        if until_s > wall_s():
            times.append(until_s)
        else:
            while count and (agent := self._offer(app, waiting)) is not None:
                self.tasks.start(app, agent)
                count -= 1
        waiting["count"] = count
        if not count:
            del self._waiting[app["id"]]

    def _offer(self, app: Json, waiting: Json) -> Agent | None:
        reasons: dict[str, str] = {}
        fellows, summary = self.tasks.of(app["id"]), waiting["processedOffersSummary"]
        for agent in sorted(self.tasks.agents.values(), key=lambda each: len(self.tasks.on(each.host))):
            if agent.host in self.state.document["lost"]:
                continue
            tasks = self.tasks.on(agent.host)
            used: Json = {each: sum(task[each] for task in tasks) for each in ("cpus", "mem", "disk")}
            used["ports"] = [port for task in tasks for port in task["ports"]]
            reason = rejection(app, agent, used, fellows, self.tasks.agents)
            summary["processedOffersCount"] += 1
            if reason is None:
                return agent
            summary["unusedOffersCount"] += 1
            summary["lastUnusedOfferAt"] = timestamp()
            reasons[agent.host] = reason
        waiting["reasons"] = reasons
        left, steps = len(reasons), []
        for each in REASONS:
            declined = sum(reason == each for reason in reasons.values())
            steps.append({"reason": each, "declined": declined, "processed": left})
            left -= declined
        summary["rejectSummaryLastOffers"] = summary["rejectSummaryLaunchAttempt"] = steps
        return None

    def _is_done(self, action: Json) -> bool:
        tasks = self.tasks.of(action["app"])
        if action["action"] == "StopApplication":
            return not tasks
        app = self.state.document["apps"].get(action["app"])
        if action["action"] == "StartApplication" or app is None:
            return True
        serving = [each for each in tasks if self._serves(each, app)]
        left = [each for each in tasks if each not in serving and each["state"] != "TASK_UNREACHABLE"]
        return len(serving) == app["instances"] and not left

    def _serves(self, task: Json, app: Json) -> bool:
        """Whether a task of the present version is healthy and ready."""
        if task["state"] != "TASK_RUNNING" or task["config"] != app["versionInfo"]["lastConfigChangeAt"]:
            return False
        healthy = all(task["health"].get(str(each), {}).get("alive") for each in range(len(app["healthChecks"])))
        return healthy and all(task["ready"].get(str(each)) for each in range(len(app["readinessChecks"])))
