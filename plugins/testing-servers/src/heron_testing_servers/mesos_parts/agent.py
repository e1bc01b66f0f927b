"""An agent of the Mesos test server: it runs tasks as processes, keeps their updates, and serves their sandboxes.

An update stays at the head of its task's list, and the master sends it again, until the framework has acknowledged it.
Tasks and lists are in a file, so they survive a killed server, as with the checkpoints of Mesos.
"""

from __future__ import annotations

import base64
import shutil
import signal
import uuid
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from heron.clock import wall_s
from heron_testing_servers.container_processes import Container, ContainerEnd, ContainerProcesses
from heron_testing_servers.http_service import Answer, Request, read_json, write_json
from heron_testing_servers.mesos_parts.resources import Resources

__all__ = ["TERMINAL", "Agent", "AgentTask", "update"]

Json = dict[str, Any]

TERMINAL = frozenset(
    {"TASK_FINISHED", "TASK_FAILED", "TASK_KILLED", "TASK_ERROR", "TASK_LOST", "TASK_DROPPED", "TASK_GONE"}
)
"""The states that a task does not leave."""

_GRACE_S = 3.0  # of a kill without a policy, as in the executor of Mesos
_SHUTDOWN_S = 5.0  # --executor_shutdown_grace_period
_ARCHIVES = (".tar", ".tar.bz2", ".tar.gz", ".tar.xz", ".tbz2", ".tgz", ".txz", ".zip")  # that the fetcher unpacks
_PAGE_BYTES = 65536  # the most that one read of a file returns


@dataclass(slots=True)
class AgentTask:
    """A task of an agent: what was launched, its state, and the updates that are not acknowledged."""

    framework: Json
    info: Json
    container: str
    state: str = "TASK_STAGING"
    updates: list[Json] = field(default_factory=list)
    ended_by: str = ""
    """Why it ends although its command has not: ``kill``, ``time`` or ``shutdown``."""
    ends_at_s: float | None = None

    @property
    def key(self) -> tuple[str, str]:
        """The ids of its framework and of itself."""
        return self.framework["id"]["value"], self.info["task_id"]["value"]

    def has(self, capability: str) -> bool:
        """Return whether its framework has a capability."""
        return capability in {each.get("type") for each in self.framework.get("capabilities", ())}


def update(task_id: str, state: str, message: str, source: str, **more: object) -> Json:
    """Return a `TaskStatus`; `more` are further fields, None leaves one out."""
    fields = {"task_id": {"value": task_id}, "state": state, "message": message, "source": f"SOURCE_{source}"}
    return {**fields, "timestamp": wall_s(), **{name: value for name, value in more.items() if value is not None}}


class Agent:
    """One agent. The lock of the server is held in every call."""

    def __init__(self, spec: Json, folder: Path, containers: ContainerProcesses, changed: Callable[[], None]) -> None:
        """`spec` has name, hostname, port, resources and attributes; `folder` is that of the server."""
        self.name = spec["name"]
        self.hostname, self.port = spec["hostname"], spec["port"]
        self.total = Resources.parse(spec["resources"])
        self.attributes = spec["attributes"]
        self.tasks: dict[tuple[str, str], AgentTask] = {}
        self.mode = "up"
        """``up``, ``partitioned`` (it runs, but the master cannot reach it) or ``down``."""
        self.id = ""
        self._runs: dict[str, str] = {}  # the containers of executors, by "framework/executor"; also of ended ones
        self._place = folder / f"{self.name}.json"
        self._containers = containers
        self._changed = changed
        self._load()

    @property
    def address(self) -> Json:
        """Its `Address`."""
        return {"hostname": self.hostname, "ip": self.hostname, "port": self.port}

    def save(self) -> None:
        """Write its state, and tell the server."""
        tasks = [asdict(each) for each in self.tasks.values()]
        write_json(self._place, {"id": self.id, "mode": self.mode, "tasks": tasks, "runs": self._runs})
        self._changed()

    def launch(self, framework: Json, info: Json) -> None:
        """Start a task with the executor for commands."""
        task = AgentTask(framework, info, str(uuid.uuid4()))
        framework_id, task_id = task.key
        self.tasks[task.key] = task
        self._runs[f"{framework_id}/{task_id}"] = task.container
        self.save()
        command = info["command"]
        if problem := _fetch(command.get("uris", ()), self._containers.sandbox(task.container)):
            self._update(task, "TASK_FAILED", problem, "REASON_CONTAINER_LAUNCH_FAILED", "AGENT")
            self.save()
            return
        variables = command.get("environment", {}).get("variables", ())
        sandbox = str(self._containers.sandbox(task.container))
        env = {
            "MESOS_AGENT_ID": self.id,
            "MESOS_DIRECTORY": sandbox,
            "MESOS_EXECUTOR_ID": task_id,
            "MESOS_FRAMEWORK_ID": framework_id,
            "MESOS_SANDBOX": sandbox,
            "MESOS_SLAVE_ID": self.id,
            "MESOS_TASK_ID": task_id,
            **{each["name"]: str(each.get("value", "")) for each in variables},
        }
        if command.get("shell", True):
            argv = ["/bin/sh", "-c", command["value"]]
        else:
            argv = [command["value"], *command.get("arguments", ())[1:]]
        self._containers.start(task.container, argv, env)
        self._update(task, "TASK_STARTING", "")
        self.save()

    def kill(self, key: tuple[str, str], policy: Json | None) -> None:
        """Order the end of a task: SIGTERM, and SIGKILL after the grace time."""
        task = self.tasks.get(key)
        if task is None or task.state in TERMINAL:
            return
        if not task.ended_by and task.has("TASK_KILLING_STATE"):
            self._update(task, "TASK_KILLING", "")
        self._stop(task, "kill", policy or task.info.get("kill_policy") or {})

    def shutdown(self, framework_id: str) -> None:
        """End all tasks of a framework that is gone; nobody gets updates."""
        for key, task in list(self.tasks.items()):
            if key[0] == framework_id:
                if task.state in TERMINAL:
                    del self.tasks[key]
                elif task.ended_by != "shutdown":
                    self._stop(task, "shutdown", {"grace_period": {"nanoseconds": _SHUTDOWN_S * 1e9}})
        self.save()

    def acknowledge(self, key: tuple[str, str], acknowledged: str) -> None:
        """Remove the first update of a task if it is the acknowledged one, and the task behind its last one."""
        task = self.tasks.get(key)
        if task is None or not task.updates or task.updates[0]["uuid"] != acknowledged:
            return
        del task.updates[0]
        if not task.updates and task.state in TERMINAL:
            del self.tasks[key]
        self.save()

    def started(self, container: Container) -> None:
        """Note that a command has its process."""
        for task in self.tasks.values():
            if task.container == container.name and task.state == "TASK_STARTING":
                limit_ns = task.info.get("max_completion_time", {}).get("nanoseconds")
                task.ends_at_s = None if limit_ns is None else wall_s() + int(limit_ns) / 1e9
                self._update(task, "TASK_RUNNING", "")
                self.save()

    def ended(self, container: Container, end: ContainerEnd) -> None:
        """Note the end of a container."""
        task = next((each for each in self.tasks.values() if each.container == container.name), None)
        if task is None or task.state in TERMINAL or self.mode == "down":
            return
        if task.ended_by == "shutdown":
            del self.tasks[task.key]
            self.save()
            return
        message = f"exited with status {end.exit_code}"
        if end.signal:
            message = f"terminated with signal {signal.strsignal(end.signal)}"
        state, reason = "TASK_FAILED" if end.code else "TASK_FINISHED", None
        if task.ended_by == "kill":
            state = "TASK_KILLED"
        elif task.ended_by == "time":
            state, reason = "TASK_FAILED", "REASON_MAX_COMPLETION_TIME_REACHED"
        self._update(task, state, f"Command {message}", reason)
        self.save()

    def tick(self) -> None:
        """End the tasks whose time is over."""
        for task in self.tasks.values():
            if task.ends_at_s is not None and wall_s() >= task.ends_at_s and not task.ended_by:
                self._stop(task, "time", task.info.get("kill_policy") or {})

    def fail(self, key: tuple[str, str], reason: str, message: str) -> None:
        """Kill a task as the agent does, for example because its memory is exhausted."""
        task = self.tasks[key]
        self._update(task, "TASK_FAILED", message, reason, "AGENT")
        self.save()
        if container := self._containers.get(task.container):
            container.kill()

    def change_mode(self, mode: str) -> None:
        """Lose the machine with all its processes (``down``), the way to it (``partitioned``), or neither (``up``)."""
        before, self.mode = self.mode, mode
        self.save()
        for task in list(self.tasks.values()):
            container = self._containers.get(task.container)
            if mode == "down" and container is not None:
                container.kill()
            elif before == "down" and task.state not in TERMINAL:
                self._update(task, "TASK_FAILED", "Executor terminated", "REASON_EXECUTOR_TERMINATED", "AGENT")
        self.save()

    def state(self) -> Json:
        """Return its ``/state``."""
        frameworks: dict[str, Json] = {}
        for run, container in self._runs.items():
            framework_id, _, executor_id = run.partition("/")
            place = frameworks.setdefault(
                framework_id, {"id": framework_id, "executors": [], "completed_executors": []}
            )
            task = self.tasks.get((framework_id, executor_id))
            runs = task is not None and task.state not in TERMINAL
            found = {
                "id": executor_id,
                "source": executor_id,
                "container": container,
                "directory": str(self._containers.sandbox(container)),
                "tasks": [{"id": executor_id, "name": task.info["name"], "state": task.state}] if task and runs else [],
            }
            place["executors" if runs else "completed_executors"].append(found)
        return {
            "id": self.id,
            "hostname": self.hostname,
            "pid": f"slave(1)@{self.hostname}:{self.port}",
            "attributes": attributes(self.attributes),
            "resources": self.total.summary(),
            "frameworks": list(frameworks.values()),
            "completed_frameworks": [],
        }

    def pid(self, task: AgentTask) -> int:
        """Return the process id of a task's command while it runs, else 0."""
        container = self._containers.get(task.container)
        return container.pid if container is not None and container.end is None else 0

    def read_file(self, request: Request, what: str) -> Answer:
        """Answer ``/files/read``, ``/files/browse`` and ``/files/download``."""
        if not request.query.get("path"):
            return Answer(400, b"Expecting 'path=value' in query.\n")
        path = self._resolve(request.query["path"])
        if path is None or not path.exists():
            return Answer(404, b"File not found.\n")
        if what == "browse":
            return Answer.json([_entry(each) for each in (sorted(path.iterdir()) if path.is_dir() else [path])])
        if path.is_dir():
            return Answer(400, b"Cannot read from a directory.\n")
        if what == "download":
            return Answer(200, path.read_bytes(), {"content-type": "application/octet-stream"})
        return _part(path, int(request.query.get("offset") or -1), int(request.query.get("length") or -1))

    def _resolve(self, path: str) -> Path | None:
        """Return a file of a sandbox: by its path, or as ``/frameworks/ID/executors/ID/runs/latest/…``."""
        parts = path.strip("/").split("/")
        if parts[0] == "frameworks" and len(parts) > 5:
            container = self._runs.get(f"{parts[1]}/{parts[3]}")
            path = str(self._containers.sandbox(container).joinpath(*parts[6:])) if container else path
        found = Path(path).resolve()
        sandboxes = (self._containers.sandbox(each).resolve() for each in self._runs.values())
        return found if any(found.is_relative_to(each) for each in sandboxes) else None

    def _stop(self, task: AgentTask, why: str, policy: Json) -> None:
        task.ended_by = why if why == "shutdown" else task.ended_by or why
        container = self._containers.get(task.container)
        if container is not None:
            grace_ns = policy.get("grace_period", {}).get("nanoseconds")
            container.stop(_GRACE_S if grace_ns is None else float(grace_ns) / 1e9)
        self.save()

    def _update(
        self, task: AgentTask, state: str, message: str, reason: str | None = None, source: str = "EXECUTOR"
    ) -> None:
        task.state = state
        task_id = task.key[1]
        address = {"ip_addresses": [{"protocol": "IPv4", "ip_address": self.hostname}]}
        container = {"container_id": {"value": task.container}, "network_infos": [address]}
        status = update(
            task_id, state, message, source, reason=reason, agent_id={"value": self.id}, executor_id={"value": task_id},
            uuid=base64.b64encode(uuid.uuid4().bytes).decode(), container_status=container,
        )  # fmt: skip
        task.updates.append(status)

    def _load(self) -> None:
        found = read_json(self._place, None)
        if found is None:
            return
        self.id, self.mode, self._runs = found["id"], found["mode"], found["runs"]
        for each in found["tasks"]:
            task = AgentTask(**each)
            self.tasks[task.key] = task
            if self._containers.get(task.container) is None and task.state not in TERMINAL:
                self._update(task, "TASK_FAILED", "Executor terminated", "REASON_EXECUTOR_TERMINATED", "AGENT")


def _fetch(uris: Iterable[Json], sandbox: Path) -> str:
    """Copy files of this machine into a sandbox, and unpack archives; return what fails, or an empty text."""
    for each in uris:
        source = Path(each["value"].removeprefix("file://"))
        target = sandbox / each.get("output_file", source.name)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
            if each.get("executable"):
                target.chmod(0o755)
            elif each.get("extract", True) and source.name.endswith(_ARCHIVES):
                shutil.unpack_archive(target, sandbox)
        except (OSError, shutil.ReadError) as error:
            return f"Failed to launch container: Failed to fetch all URIs: {error}"
    return ""


def attributes(messages: list[Json]) -> Json:
    """Return attributes as the state of master and agents shows them."""
    return {each["name"]: each["scalar" if each["type"] == "SCALAR" else "text"]["value"] for each in messages}


def _part(path: Path, offset: int, length: int) -> Answer:
    """Return a part of a file, or its size without an offset."""
    if offset < 0:
        return Answer.json({"data": "", "offset": path.stat().st_size})
    with path.open("rb") as file:
        file.seek(offset)
        data = file.read(_PAGE_BYTES if length < 0 else min(length, _PAGE_BYTES))
    return Answer.json({"data": data.decode("utf-8", "replace"), "offset": offset})


def _entry(path: Path) -> Json:
    stat = path.stat()
    kind = "d" if path.is_dir() else "-"
    return {
        "path": str(path),
        "size": stat.st_size,
        "mtime": stat.st_mtime,
        "nlink": stat.st_nlink,
        "mode": f"{kind}rw-r--r--",
    }
