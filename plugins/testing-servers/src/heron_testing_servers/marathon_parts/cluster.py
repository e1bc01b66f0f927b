"""The tasks of a Marathon on the agents of Mesos: their starts, ends and kills, and agents that are lost."""

from __future__ import annotations

import shutil
import socket
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from heron.clock import wall_s
from heron_testing_servers.container_processes import Container, ContainerEnd, ContainerProcesses, shell
from heron_testing_servers.marathon_parts.apps import Agent
from heron_testing_servers.marathon_parts.deployments import timestamp
from heron_testing_servers.marathon_parts.launch import fetch, image_of, variables
from heron_testing_servers.reconciled_state import ReconciledState

__all__ = ["MarathonTasks"]

Json = dict[str, Any]

_GRACE_S = 3.0  # of the command executor of Mesos
_FORGOTTEN_S = 10.0  # after the end of a delay, when no task has failed again
_DELAYED = ("TASK_FAILED", "TASK_FINISHED", "TASK_DROPPED", "TASK_GONE")
_SIGNALS = {9: "Killed", 11: "Segmentation fault", 15: "Terminated"}


class MarathonTasks:
    """The tasks in `state`; `emit` tells of each change of their states."""

    def __init__(
        self, folder: Path, owner: int, agents: Iterable[Agent], state: ReconciledState, emit: Callable[..., None]
    ) -> None:
        self.agents = {each.host: each for each in agents}
        self.framework = f"{uuid.uuid5(uuid.NAMESPACE_URL, str(folder))}-0000"
        """The id of Marathon as a framework of Mesos."""
        self.containers = ContainerProcesses(folder / "containers", owner, self._ended, self._started)
        self._state = state
        self._emit = emit

    def restore(self) -> None:
        """Find the containers of tasks again; a task without one is dropped."""
        found = {each.name for each in self.containers.restore()}
        for task in list(self._state.document["tasks"].values()):
            if task["id"] not in found:
                self._finish(task, "TASK_DROPPED", "Agent did not know the task")
            elif task["state"] == "TASK_STAGING":
                task.update(state="TASK_RUNNING", startedAt=timestamp())

    def on(self, host: str) -> list[Json]:
        """Return the tasks of an agent."""
        return [each for each in self._state.document["tasks"].values() if each["host"] == host]

    def of(self, app: str) -> list[Json]:
        """Return the tasks of an app, the oldest first."""
        return [each for each in self._state.document["tasks"].values() if each["appId"] == app]

    def start(self, app: Json, agent: Agent) -> None:
        """Start a task of an app on an agent."""
        name = f"{app['id'].strip('/').replace('/', '_')}.instance-{uuid.uuid4()}._app.1"
        task = {
            "id": name,
            "appId": app["id"],
            "host": agent.host,
            "slaveId": agent.id,
            "ports": self._ports(app, agent),
            "servicePorts": [each["port"] for each in app["portDefinitions"]],
            "ipAddresses": [{"ipAddress": agent.host, "protocol": "IPv4"}],
            "version": app["version"],
            "config": app["versionInfo"]["lastConfigChangeAt"],
            "stagedAt": timestamp(),
            "grace": app.get("taskKillGracePeriodSeconds", _GRACE_S),
            "health": {},
            "ready": {},
            **{each: app[each] for each in ("cpus", "mem", "disk")},
        }
        self._state.document["tasks"][name] = task
        self._set(task, "TASK_STAGING", "")
        self._state.keep()
        image = image_of(app)
        try:
            if image.startswith("missing"):
                msg = f"Failed to pull image '{image}'"
                raise ValueError(msg)
            self._run(app, task)
        except (OSError, ValueError, shutil.ReadError) as error:
            self._finish(task, "TASK_FAILED", f"Failed to launch container: {error}")

    def kill(self, tasks: Iterable[Json], *, wipe: bool = False) -> None:
        """Kill tasks of apps; new ones follow when they have ended, with `wipe` at once.

        A task on a lost agent is expunged, because no kill arrives there.
        """
        with self._state.lock:
            killed = [each for each in tasks if wipe or each["state"] != "TASK_KILLING"]
            for task in killed:
                if wipe or task["state"] == "TASK_UNREACHABLE":
                    self._expunge(task)
                else:
                    self._set(task, "TASK_KILLING", "")
                if task["host"] not in self._state.document["lost"] and (container := self.containers.get(task["id"])):
                    container.stop(task["grace"])
            if killed:
                self._state.save()

    def out_of_memory(self, name: str) -> None:
        """Kill a task as an agent does whose task exceeds its memory."""
        with self._state.lock:
            task = self._state.document["tasks"][name]
            limit = f"{task['mem']:g}MB"
            task["reason"] = f"Memory limit exceeded: Requested: {limit} Maximum Used: {limit}"
            container = self.containers.get(name)
        assert container is not None
        container.kill()

    def set_agent(self, host: str, *, reachable: bool, running: bool) -> None:
        """Lose an agent or let it come back. With `running` its tasks run on meanwhile, else they end."""
        with self._state.lock:
            lost, _ = self._state.document["lost"], self.agents[host]
            if not reachable and host not in lost:
                lost.append(host)
                for task in self.on(host):
                    task["unreachable_at_s"] = wall_s()
                    self._set(task, "TASK_UNREACHABLE", "Agent became unreachable")
            ending = [] if running else [each["id"] for each in self.on(host)]
            if reachable and host in lost:
                lost.remove(host)
                ending = [name for name, at in self._state.document["expunged"] if at == host]
                self._state.document["expunged"] = [
                    each for each in self._state.document["expunged"] if each[1] != host
                ]
                for task in list(self.on(host)):
                    self._return(task)
            for each in ending:
                if (container := self.containers.get(each)) is not None:
                    container.stop(0.0)
            self._state.save()

    def expunge_lost(self, times: list[float]) -> None:
        """Expunge the tasks of lost agents whose time is over, and note the next times."""
        for task in list(self._state.document["tasks"].values()):
            if task["state"] != "TASK_UNREACHABLE":
                continue
            strategy = self._unreachable(task)
            if strategy is None:
                continue
            times.extend(task["unreachable_at_s"] + each for each in strategy)
            if wall_s() >= task["unreachable_at_s"] + strategy[1]:
                self._expunge(task)
        times[:] = [each for each in times if each > wall_s()]

    def may_return(self, task: Json) -> bool:
        """Return whether a task of a lost agent is not replaced yet."""
        strategy = self._unreachable(task)
        return strategy is None or wall_s() < task["unreachable_at_s"] + strategy[0]

    def _run(self, app: Json, task: Json) -> None:
        sandbox = self.containers.sandbox(task["id"])
        for each in app["fetch"]:
            fetch(each, sandbox)
        env = variables(app, task)
        argv = shell(app["cmd"]) if "cmd" in app else app["args"]
        own = {"MESOS_FRAMEWORK_ID": self.framework, "MESOS_SANDBOX": str(sandbox)}
        self.containers.start(task["id"], argv, {**env, **own, **app["env"]})

    def _ports(self, app: Json, agent: Agent) -> list[int]:
        if app["requirePorts"]:
            return [each["port"] for each in app["portDefinitions"]]
        used = {port for task in self.on(agent.host) for port in task["ports"]}
        free = (each for each in range(agent.first_port, agent.last_port + 1) if each not in used and _is_free(each))
        return [next(free) for _ in app["portDefinitions"]]

    def _started(self, container: Container) -> None:
        with self._state.lock:
            task = self._state.document["tasks"].get(container.name)
            if task is not None and task["state"] == "TASK_STAGING":
                task["startedAt"] = timestamp()
                self._set(task, "TASK_RUNNING", "")
                self._state.save()

    def _ended(self, container: Container, end: ContainerEnd) -> None:
        with self._state.lock:
            task = self._state.document["tasks"].get(container.name)
            if task is None:
                return
            if task["state"] == "TASK_UNREACHABLE":
                task["gone"] = True  # nobody hears of it while the agent is lost
            else:
                text = f"Command exited with status {end.exit_code}"
                if end.signal:
                    text = f"Command terminated with signal {_SIGNALS.get(end.signal, end.signal)}"
                state = "TASK_FINISHED" if end.code == 0 else "TASK_FAILED"
                state = "TASK_KILLED" if task["state"] == "TASK_KILLING" else state
                self._finish(task, state, task.get("reason") or text)
            self._state.save()

    def _finish(self, task: Json, state: str, message: str) -> None:
        self._set(task, state, message)
        self._state.document["tasks"].pop(task["id"])
        self._state.save()
        self._state.document["ended"][task["id"]] = {
            each: task[each] for each in ("id", "appId", "host", "state", "slaveId")
        }
        app = self._state.document["apps"].get(task["appId"])
        if app is None:
            return
        if state in _DELAYED:
            former = self._state.document["delays"].get(app["id"], {"until_s": 0.0})
            former_s = former["delay_s"] if wall_s() < former["until_s"] + _FORGOTTEN_S else 0.0
            delay_s = min(former_s * app["backoffFactor"] or app["backoffSeconds"], app["maxLaunchDelaySeconds"])
            self._state.document["delays"][app["id"]] = {"delay_s": delay_s, "until_s": wall_s() + delay_s}
        if state not in {"TASK_FINISHED", "TASK_KILLED"}:
            same = {each: task[each] for each in ("appId", "host", "slaveId", "version", "state")}
            failure = {**same, "taskId": task["id"], "message": message, "timestamp": timestamp()}
            self._state.document["failures"][app["id"]] = failure

    def _set(self, task: Json, state: str, message: str) -> None:
        task["state"] = state
        named = {each: task[each] for each in ("slaveId", "appId", "host", "ports", "version", "ipAddresses")}
        self._emit("status_update_event", taskId=task["id"], taskStatus=state, message=message, **named)

    def _unreachable(self, task: Json) -> tuple[float, float] | None:
        """The seconds until a task is inactive, and until it is expunged; None when never."""
        strategy = self._state.document["apps"].get(task["appId"], {}).get("unreachableStrategy", {})
        if strategy == "disabled":
            return None
        return float(strategy.get("inactiveAfterSeconds", 0)), float(strategy.get("expungeAfterSeconds", 0))

    def _expunge(self, task: Json) -> None:
        self._state.document["expunged"].append([task["id"], task["host"]])
        self._state.document["tasks"].pop(task["id"])

    def _return(self, task: Json) -> None:
        container = self.containers.get(task["id"])
        if task.get("gone") or container is None or container.end is not None:
            self._finish(task, "TASK_GONE", "Agent came back without the task")
        else:
            self._set(task, "TASK_RUNNING", "Agent came back")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True
