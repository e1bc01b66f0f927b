"""Health and readiness checks of Marathon, which run while a task does."""

from __future__ import annotations

import socket
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from heron.clock import wall_s
from heron_testing_servers.container_processes import shell
from heron_testing_servers.marathon_parts.cluster import MarathonTasks
from heron_testing_servers.marathon_parts.deployments import timestamp
from heron_testing_servers.reconciled_state import ReconciledState

__all__ = ["MarathonChecks"]

Json = dict[str, Any]


class MarathonChecks:
    """Keeps the results in the tasks, and kills those that fail too often."""

    def __init__(self, state: ReconciledState, tasks: MarathonTasks, emit: Callable[..., None]) -> None:
        self._state = state
        self._tasks = tasks
        self._emit = emit
        self._due: dict[tuple[str, str, int], float] = {}

    def run(self, task: Json, times: list[float]) -> None:
        """Begin the checks of a task that are due, and note the next times."""
        app = self._state.document["apps"].get(task["appId"])
        if app is None or task["state"] != "TASK_RUNNING" or task["config"] != app["versionInfo"]["lastConfigChangeAt"]:
            return
        for kind, default_s in (("healthChecks", 60), ("readinessChecks", 30)):
            for index, check in enumerate(app[kind]):
                key = (task["id"], kind, index)
                due_s = self._due.get(key, 0.0)
                if kind == "readinessChecks" and task["ready"].get(str(index)):
                    continue
                if due_s <= wall_s():
                    due_s = self._due[key] = wall_s() + max(check.get("intervalSeconds", default_s), 0.05)
                    threading.Thread(target=self._probe, args=(task["id"], app, kind, index), daemon=True).start()
                times.append(due_s)

    def _probe(self, name: str, app: Json, kind: str, index: int) -> None:
        check = app[kind][index]
        with self._state.lock:
            task = self._state.document["tasks"].get(name)
        if task is None:
            return
        cause = _failure_of(check, task, app, self._tasks.containers.sandbox(name))
        with self._state.lock:
            if task["state"] != "TASK_RUNNING":
                return
            if kind == "readinessChecks":
                task["ready"][str(index)] = not cause
            else:
                self._take_health(task, app, index, cause)
            self._state.save()

    def _take_health(self, task: Json, app: Json, index: int, cause: str) -> None:
        name, check = task["id"], app["healthChecks"][index]
        health = task["health"].setdefault(str(index), {"alive": False, "consecutiveFailures": 0, "instanceId": name})
        health["consecutiveFailures"] = health["consecutiveFailures"] + 1 if cause else 0
        if cause:
            health.update(lastFailure=timestamp(), lastFailureCause=cause, alive=False)
        else:
            health.setdefault("firstSuccess", timestamp())
            health.update(lastSuccess=timestamp(), alive=True)
        started_s = datetime.fromisoformat(task["startedAt"]).timestamp()
        in_grace = "firstSuccess" not in health and wall_s() < started_s + check.get("gracePeriodSeconds", 300)
        if cause and not in_grace and health["consecutiveFailures"] >= check.get("maxConsecutiveFailures", 3):
            self._emit("unhealthy_task_kill_event", appId=app["id"], taskId=name, reason=cause, host=task["host"])
            self._tasks.kill([task])


def _failure_of(check: Json, task: Json, app: Json, sandbox: Path) -> str:
    """Run a health or readiness check once, and return what is wrong, or the empty text."""
    protocol, timeout_s = check.get("protocol", "HTTP"), check.get("timeoutSeconds", 10)
    if protocol == "COMMAND":
        try:
            ran = subprocess.run(shell(check["command"]["value"]), cwd=sandbox, timeout=timeout_s, check=False)
        except subprocess.TimeoutExpired as error:
            return str(error)
        return f"Command returned exit status: {ran.returncode}" if ran.returncode else ""
    if "portName" in check or "portIndex" not in check:
        names = [each.get("name") for each in app["portDefinitions"]]
        index = names.index(check["portName"]) if "portName" in check else 0
    else:
        index = check["portIndex"]
    port = check.get("port") or task["ports"][index]
    ready = check.get("httpStatusCodesForReady", range(200, 400))
    try:
        if protocol.endswith("TCP"):
            socket.create_connection((task["host"], port), timeout_s).close()
            return ""
        with urllib.request.urlopen(
            f"http://{task['host']}:{port}{check.get('path', '/')}", timeout=timeout_s
        ) as answer:
            status = answer.status
    except urllib.error.HTTPError as error:
        status = error.code
        error.close()
    except OSError as error:
        return f"{type(error).__name__}: {error}"
    return "" if status in ready else f"{status}"
