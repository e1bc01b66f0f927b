"""The tasks of ECS: how they start and end as containers of this machine, and which statuses they come through."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from heron.clock import wall_s
from heron_testing_servers.container_processes import Container, ContainerEnd, ContainerProcesses
from heron_testing_servers.ecs_parts.access import arn
from heron_testing_servers.ecs_parts.agent import EcsAgent, StartError
from heron_testing_servers.reconciled_state import ReconciledState

__all__ = ["EcsTasks"]

Json = dict[str, Any]

_STOP_S = 30.0
_CLEAN_EXIT = "Essential container in task exited"
_UNPULLED = (
    "CannotPullContainerError: pull image manifest has been retried 1 time(s): failed to resolve ref {0}: pulling from "
    "host registry failed with status code [manifests latest]: 404 Not Found"
)
_OUT_OF_MEMORY = "OutOfMemoryError: Container killed due to memory usage"


class EcsTasks:
    """The tasks in `state`; `on_failed_start` is called with a task that has not come to ``RUNNING``."""

    def __init__(
        self, folder: Path, owner: int, state: ReconciledState, agent: EcsAgent, on_failed_start: Callable[[Json], None]
    ) -> None:
        self.containers = ContainerProcesses(folder / "containers", owner, self._ended, self._started)
        self._state = state
        self._agent = agent
        self._on_failed_start = on_failed_start
        self._region = str(state.document["region"])

    def restore(self) -> None:
        """Find the containers of tasks again; what has no container any more has stopped."""
        found = {each.name: each for each in self.containers.restore()}
        for task in self.live():
            for each in task["containers"]:
                container = found.get(each["runtimeId"])
                if container is None and task["lastStatus"] != self._state.document["held"]:
                    self._stopped(task, "TaskFailedToStart", "Task failed to start")
                elif container is not None and container.end is None:
                    self._started(container)

    def live(self) -> list[Json]:
        """Return the tasks that have not stopped."""
        return [each for each in self._state.document["tasks"].values() if each["lastStatus"] != "STOPPED"]

    def start(self, definition: Json, settings: Json, placed: Json) -> Json:
        """Start a task of a definition; `placed` has where, from `EcsController.place`."""
        name = uuid.uuid4().hex
        cluster = settings["clusterArn"].rpartition("/")[2]
        fargate = settings.get("launchType") == "FARGATE"
        self._state.document["address"] += 1
        number = self._state.document["address"]
        address = f"127.1.{number // 250}.{number % 250 + 1}"
        own = definition.get("networkMode") == "awsvpc"
        task: Json = {
            "taskArn": arn("ecs", self._region, f"task/{cluster}/{name}"),
            "taskDefinitionArn": definition["taskDefinitionArn"],
            "lastStatus": "PROVISIONING" if fargate else "PENDING",
            "desiredStatus": "RUNNING",
            "createdAt": wall_s(),
            "version": 1,
            "cpu": definition.get("cpu", "0"),
            "memory": definition.get("memory", "0"),
            "connectivity": "CONNECTED",
            "healthStatus": "UNKNOWN",
            "attachments": [],
            "overrides": {"containerOverrides": []},
            "containers": [],
            **placed,
            **settings,
        }
        if own:
            details = [{"name": "privateIPv4Address", "value": address}]
            attached = {"type": "ElasticNetworkInterface", "status": "ATTACHED", "details": details}
            task["attachments"] = [{"id": str(uuid.uuid4()), **attached}]
        for each in definition["containerDefinitions"]:
            container = {
                "containerArn": arn("ecs", self._region, f"container/{cluster}/{name}/{uuid.uuid4()}"),
                "taskArn": task["taskArn"],
                "name": each["name"],
                "image": each["image"],
                "runtimeId": f"{name}-{uuid.uuid4().int % 10**10:010d}",
                "lastStatus": "PENDING",
                "networkInterfaces": [{"privateIpv4Address": address}] if own else [],
                "cpu": str(each.get("cpu", 0)),
            }
            task["containers"].append(container)
        self._state.document["tasks"][task["taskArn"]] = task
        self._state.keep()
        if self._state.document["held"] != task["lastStatus"]:
            self._launch(task, definition)
        return task

    def hold(self, status: str) -> None:
        """Keep tasks that come to a status there; the empty text lets all go on."""
        with self._state.lock:
            before, self._state.document["held"] = self._state.document["held"], status
            for task in self.live():
                if task["lastStatus"] == before == "DEPROVISIONING":
                    _change(task, "STOPPED")
                elif task["lastStatus"] == before:
                    self._launch(task, self._state.document["definitions"][task["taskDefinitionArn"]])
            self._state.save()

    def stop(self, task: Json, code: str, reason: str) -> None:
        """Order the end of a task: SIGTERM, and SIGKILL after the ``stopTimeout`` of a container."""
        if task["desiredStatus"] == "STOPPED":
            return
        task.update(desiredStatus="STOPPED", stopCode=code, stoppedReason=reason, stoppingAt=wall_s())
        _change(task, "STOPPING")
        containers = [self.containers.get(each["runtimeId"]) for each in task["containers"]]
        for each, container in zip(self._definitions(task), containers, strict=True):
            if container is not None:
                container.stop(float(each.get("stopTimeout", _STOP_S)))
        if not any(containers):
            self._stopped(task, code, reason)
        self._state.save()

    def out_of_memory(self, name: str) -> None:
        """Kill the containers of a task as the kernel does when it exceeds its memory."""
        with self._state.lock:
            task = self._state.document["tasks"][name]
            for each in task["containers"]:
                each["reason"] = _OUT_OF_MEMORY
            containers = [self.containers.get(each["runtimeId"]) for each in task["containers"]]
        for container in containers:
            assert container is not None
            container.kill()

    def interrupt(self, name: str) -> None:
        """End a task as Fargate Spot does when it takes its capacity back."""
        with self._state.lock:
            self.stop(self._state.document["tasks"][name], "SpotInterruption", "Your Spot Task was interrupted.")

    def end_on(self, name: str, instance: str) -> None:
        """End the tasks of an instance of EC2 that is terminated."""
        for task in self.live():
            if task.get("containerInstanceArn") == instance:
                task.update(desiredStatus="STOPPED", stopCode="TerminationNotice")
                task["stoppedReason"] = f"Host EC2 (instance {name}) terminated."
                for each in task["containers"]:
                    if (container := self.containers.get(each["runtimeId"])) is not None:
                        container.stop(0.0)

    def _launch(self, task: Json, definition: Json) -> None:
        _change(task, "PENDING")
        try:
            for each, container in zip(definition["containerDefinitions"], task["containers"], strict=True):
                if each["image"].partition(":")[0].endswith("missing"):
                    container["reason"] = _UNPULLED.format(each["image"])
                    raise StartError(container["reason"])
                role = definition.get("executionRoleArn", "")
                secrets = self._agent.prepare(task, each, role, self._state.document["roles"])
                self._run(task, each, container, secrets)
        except StartError as error:
            self._stopped(task, "TaskFailedToStart", str(error))

    def _run(self, task: Json, each: Json, container: Json, secrets: dict[str, str]) -> None:
        overrides = [one for one in task["overrides"]["containerOverrides"] if one.get("name") == each["name"]]
        override = overrides[0] if overrides else {}
        variables = (*each.get("environment", ()), *override.get("environment", ()))
        fargate = task.get("launchType") == "FARGATE"
        env = {
            **{one["name"]: one["value"] for one in variables},
            **secrets,
            "AWS_EXECUTION_ENV": "AWS_ECS_FARGATE" if fargate else "AWS_ECS_EC2",
            "AWS_REGION": self._region,
            "AWS_DEFAULT_REGION": self._region,
            "ECS_CONTAINER_METADATA_URI_V4": f"{self._state.document['url']}/v4/{container['runtimeId']}",
        }
        argv = [*each.get("entryPoint", ()), *(override.get("command") or each.get("command", ()))]
        self.containers.start(container["runtimeId"], argv or ["true"], env, stop_group=False, one_output=True)

    def _find(self, container: Container) -> tuple[Json, Json] | None:
        for task in self._state.document["tasks"].values():
            for each in task["containers"]:
                if each["runtimeId"] == container.name:
                    return task, each
        return None

    def _definitions(self, task: Json) -> list[Json]:
        """The container definitions of a task."""
        definition = self._state.document["definitions"][task["taskDefinitionArn"]]
        return list(definition["containerDefinitions"])

    def _started(self, container: Container) -> None:
        with self._state.lock:
            found = self._find(container)
            if found is None:
                return
            task, each = found
            if each["lastStatus"] == "PENDING":
                each["lastStatus"] = "RUNNING"
            if all(one["lastStatus"] == "RUNNING" for one in task["containers"]) and "startedAt" not in task:
                task["startedAt"] = wall_s()
                if task["desiredStatus"] == "RUNNING":
                    _change(task, "RUNNING")
            own = next(one for one in self._definitions(task) if one["name"] == each["name"])
            self._state.save()
        self._agent.follow(container, task, own)

    def _ended(self, container: Container, end: ContainerEnd) -> None:
        with self._state.lock:
            found = self._find(container)
            if found is None or found[0]["lastStatus"] == "STOPPED":
                return
            task, each = found
            each.update(lastStatus="STOPPED", exitCode=end.code)
            essential = {one["name"]: one["essential"] for one in self._definitions(task)}
            if essential[each["name"]] and task["desiredStatus"] == "RUNNING":
                self.stop(task, "EssentialContainerExited", _CLEAN_EXIT)
            if all(one["lastStatus"] == "STOPPED" for one in task["containers"]):
                self._stopped(task, "EssentialContainerExited", _CLEAN_EXIT)
            self._state.save()

    def _stopped(self, task: Json, code: str, reason: str) -> None:
        task.setdefault("stopCode", code)
        task.setdefault("stoppedReason", reason)
        for each in task["containers"]:
            each["lastStatus"] = "STOPPED"
            if (container := self.containers.get(each["runtimeId"])) is not None:
                container.stop(0.0)
        task.update(
            desiredStatus="STOPPED", stoppedAt=wall_s(), executionStoppedAt=wall_s(), connectivity="DISCONNECTED"
        )
        _change(task, "DEPROVISIONING" if self._state.document["held"] == "DEPROVISIONING" else "STOPPED")
        self._state.save()
        if code == "TaskFailedToStart":
            self._on_failed_start(task)


def _change(task: Json, status: str) -> None:
    task.update(lastStatus=status, version=task["version"] + 1)
