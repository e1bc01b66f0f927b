"""The state of an ECS: clusters, task definitions, services with their deployments, and tasks.

One thread compares what services want with what runs. All is in a file, so a restarted server goes on.
"""

from __future__ import annotations

import math
import uuid
from pathlib import Path
from typing import Any

from heron.clock import wall_s
from heron_testing_servers.ecs_parts.access import arn
from heron_testing_servers.ecs_parts.agent import EcsAgent
from heron_testing_servers.ecs_parts.placement import describe_failure, place
from heron_testing_servers.ecs_parts.tasks import EcsTasks
from heron_testing_servers.reconciled_state import ReconciledState

__all__ = ["EcsController"]

Json = dict[str, Any]

_RETRY_S = 0.5
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.2, 30.0
_EVENTS = 100
_SCALING = "Scaling activity initiated by (deployment {})"
_OF_DEPLOYMENT = ("taskDefinition", "desiredCount", "launchType", "capacityProviderStrategy", "networkConfiguration")


class EcsController:
    """For use from any thread, with the lock of `state`."""

    def __init__(self, folder: Path, owner: int, options: Json, agent: EcsAgent) -> None:
        """Take the folder of the server, and the process with which all containers end."""
        self.region = str(options["region"])
        name = options["cluster"]
        cluster = {"clusterName": name, "clusterArn": self.arn(f"cluster/{name}"), "status": "ACTIVE"}
        instances = {self.arn(f"container-instance/{each['name']}"): each for each in options["instances"]}
        default = {
            "region": self.region,
            "clusters": {name: cluster},
            "instances": instances,
            "fargate": True,
            "address": 0,
            "held": "",
            **{each: {} for each in ("definitions", "services", "tasks", "users", "roles", "tags")},
        }
        self.state = ReconciledState(folder / "ecs.json", default)
        self.tasks = EcsTasks(folder, owner, self.state, agent, self._count_failed_start)

    def arn(self, rest: str) -> str:
        """Return the name of a resource of ECS."""
        return arn("ecs", self.region, rest)

    def run(self) -> None:
        """Begin; call it once."""
        with self.state.lock:
            self.tasks.restore()
        self.state.run(self._round)

    def tasks_of(self, service: Json) -> list[Json]:
        """Return the tasks of a service that have not stopped, the oldest first."""
        group = f"service:{service['serviceName']}"
        return [
            each for each in self.tasks.live() if each["group"] == group and each["clusterArn"] == service["clusterArn"]
        ]

    def deploy(self, service: Json) -> None:
        """Begin a deployment of the present settings of a service."""
        for each in service["deployments"]:
            each["status"] = "ACTIVE"
        now = wall_s()
        deployment = {
            "id": f"ecs-svc/{uuid.uuid4().int % 10**19:019d}",
            "status": "PRIMARY",
            "createdAt": now,
            "updatedAt": now,
            "failedTasks": 0,
            "rolloutState": "IN_PROGRESS",
            **{each: service[each] for each in _OF_DEPLOYMENT if each in service},
        }
        deployment["rolloutStateReason"] = f"ECS deployment {deployment['id']} in progress."
        service["deployments"].insert(0, deployment)
        service["waits"] = {"failures": 0, "until_s": 0.0}

    def set_instance(self, name: str, *, running: bool) -> None:
        """Terminate an instance of EC2 with its tasks, or start it."""
        with self.state.lock:
            instance = self.arn(f"container-instance/{name}")
            self.state.document["instances"][instance]["lost"] = not running
            if not running:
                self.tasks.end_on(name, instance)
            self.state.save()

    def place(self, definition: Json, settings: Json) -> tuple[Json, str]:
        """Choose where a task runs; return that, or the reason of a failure."""
        if settings.get("launchType") == "FARGATE":
            return {}, "" if self.state.document["fargate"] else "RESOURCE:FARGATE"
        instances = {name: each for name, each in self.state.document["instances"].items() if not each.get("lost")}
        name, reason = place(definition, settings, instances, self.tasks.live(), self.state.document["definitions"])
        return {"containerInstanceArn": name}, reason

    def _round(self, times: list[float]) -> None:
        for service in list(self.state.document["services"].values()):
            self._compare(service, times)

    def _compare(self, service: Json, times: list[float]) -> None:
        tasks = self.tasks_of(service)
        alive = [each for each in tasks if each["desiredStatus"] == "RUNNING"]
        if service["status"] != "ACTIVE":
            for each in alive:
                self.tasks.stop(each, "ServiceSchedulerInitiated", _SCALING.format(each["startedBy"]))
            if service["status"] == "DRAINING" and not tasks:
                service["status"] = "INACTIVE"
            return
        primary = service["deployments"][0]
        new = [each for each in alive if each["startedBy"] == primary["id"]]
        old = [each for each in alive if each["startedBy"] != primary["id"]]
        running = [each for each in new if each["lastStatus"] == "RUNNING"]
        desired, limits = service["desiredCount"], service["deploymentConfiguration"]
        if primary["rolloutState"] != "FAILED":
            least = math.ceil(desired * limits["minimumHealthyPercent"] / 100)
            most = math.floor(desired * limits["maximumPercent"] / 100) if old else desired
            kept = max(0, least - len(running)) if len(running) < desired else 0
            surplus = [*old[kept:], *new[desired:]]
            for each in surplus:
                self.tasks.stop(each, "ServiceSchedulerInitiated", _SCALING.format(each["startedBy"]))
            self._tell(service, "has stopped {} running tasks", surplus)
            missing = min(desired - len(new), most - len(new) - min(len(old), kept))
            if missing > 0:
                self._start_missing(service, primary, missing, times)
        self._describe(service)

    def _start_missing(self, service: Json, deployment: Json, count: int, times: list[float]) -> None:
        until_s = service["waits"]["until_s"]
        if until_s > wall_s():
            times.append(until_s)
            return
        definition = self.state.document["definitions"][deployment["taskDefinition"]]
        settings = {
            "clusterArn": service["clusterArn"],
            "group": f"service:{service['serviceName']}",
            "startedBy": deployment["id"],
            "launchType": _launch_type(service),
            "enableExecuteCommand": service.get("enableExecuteCommand", False),
            **{each: service[each] for each in ("placementConstraints", "placementStrategy") if service.get(each)},
        }
        if provider := service.get("capacityProviderStrategy"):
            settings["capacityProviderName"] = provider[0]["capacityProvider"]
        if service.get("propagateTags") == "SERVICE":
            settings["tags"] = self.state.document["tags"].get(service["serviceArn"], [])
        elif service.get("propagateTags") == "TASK_DEFINITION":
            settings["tags"] = self.state.document["tags"].get(deployment["taskDefinition"], [])
        started = []
        for _ in range(count):
            placed, reason = self.place(definition, settings)
            if reason:
                self._event(service, describe_failure(service["serviceName"], reason, self.state.document["instances"]))
                times.append(wall_s() + _RETRY_S)
                break
            task = self.tasks.start(definition, settings, placed)
            started.append(task)
            if service["waits"]["until_s"] > wall_s():
                self.state.save()
                break
        self._tell(service, "has started {} tasks", started)

    def _describe(self, service: Json) -> None:
        """Count, and end a deployment whose service is steady."""
        primary = service["deployments"][0]
        alive = [each for each in self.tasks_of(service) if each["desiredStatus"] == "RUNNING"]
        old = [each for each in alive if each["startedBy"] != primary["id"]]
        for deployment in service["deployments"]:
            own = [each for each in alive if each["startedBy"] == deployment["id"]]
            running = sum(each["lastStatus"] == "RUNNING" for each in own)
            deployment.update(runningCount=running, pendingCount=len(own) - running)
        failed = primary["rolloutState"] == "FAILED"
        primary["desiredCount"] = 0 if failed else service["desiredCount"]
        for name in ("runningCount", "pendingCount"):
            service[name] = sum(each[name] for each in service["deployments"])
        steady = not old and primary["runningCount"] == service["desiredCount"] and not primary["pendingCount"]
        if steady and not failed:
            service["waits"]["failures"] = 0
            if primary["rolloutState"] == "IN_PROGRESS":
                primary.update(
                    rolloutState="COMPLETED", rolloutStateReason=f"ECS deployment {primary['id']} completed."
                )
                primary["updatedAt"] = wall_s()
                service["deployments"] = [primary]
                self._event(service, f"(service {service['serviceName']}) has reached a steady state.")

    def _count_failed_start(self, task: Json) -> None:
        for service in list(self.state.document["services"].values()):
            for deployment in list(service["deployments"]):
                if deployment["id"] == task.get("startedBy"):
                    self._count_failure(service, deployment)

    def _count_failure(self, service: Json, deployment: Json) -> None:
        deployment["failedTasks"] += 1
        waits = service["waits"]
        waits["failures"] += 1
        waits["until_s"] = wall_s() + min(_FIRST_WAIT_S * 2.0 ** (waits["failures"] - 1), _LONGEST_WAIT_S)
        breaker = service["deploymentConfiguration"].get("deploymentCircuitBreaker", {})
        threshold = min(max(3, math.ceil(service["desiredCount"] / 2)), 200)
        if waits["failures"] == threshold:
            self._event(
                service, f"(service {service['serviceName']}) is unable to consistently start tasks successfully."
            )
        if (
            not breaker.get("enable")
            or deployment["failedTasks"] < threshold
            or deployment["rolloutState"] != "IN_PROGRESS"
        ):
            return
        text = "ECS deployment circuit breaker: tasks failed to start."
        deployment.update(rolloutState="FAILED", rolloutStateReason=text, updatedAt=wall_s())
        self._event(
            service,
            f"(service {service['serviceName']}) ({deployment['id']}) deployment failed: tasks failed to start.",
        )
        completed = [each for each in service["deployments"][1:] if each["rolloutState"] == "COMPLETED"]
        if breaker.get("rollback") and completed and deployment["status"] == "PRIMARY":
            back = completed[0]
            service.update({name: back[name] for name in _OF_DEPLOYMENT if name in back and name != "desiredCount"})
            service["deployments"] = [back, deployment]
            deployment["status"], service["waits"]["failures"] = "ACTIVE", 0
            text = f"ECS deployment circuit breaker: rolling back to deploymentId {back['id']}."
            back.update(status="PRIMARY", rolloutState="IN_PROGRESS", rolloutStateReason=text, updatedAt=wall_s())
            self._event(service, f"(service {service['serviceName']}) rolling back to deployment {back['id']}.")

    def _tell(self, service: Json, what: str, tasks: list[Json]) -> None:
        if tasks:
            names = " ".join(f"(task {each['taskArn'].rpartition('/')[2]})" for each in tasks)
            self._event(service, f"(service {service['serviceName']}) {what.format(len(tasks))}: {names}.")

    def _event(self, service: Json, message: str) -> None:
        if service["events"] and service["events"][0]["message"] == message:
            service["events"][0]["createdAt"] = wall_s()
            return
        service["events"].insert(0, {"id": str(uuid.uuid4()), "createdAt": wall_s(), "message": message})
        del service["events"][_EVENTS:]


def _launch_type(service: Json) -> str:
    providers = [each["capacityProvider"] for each in service.get("capacityProviderStrategy", ())]
    return "FARGATE" if any(each.startswith("FARGATE") for each in providers) else str(service.get("launchType", "EC2"))
