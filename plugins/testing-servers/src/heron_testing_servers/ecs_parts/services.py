"""Requests for services and tasks."""

from __future__ import annotations

from typing import Any

from heron.clock import wall_s
from heron_testing_servers.ecs_parts.access import AwsRequest
from heron_testing_servers.ecs_parts.definitions import EcsError, refuse
from heron_testing_servers.ecs_parts.requests import EcsRequests, page

__all__ = ["EcsServices"]

Json = dict[str, Any]

_NO_ROLE = (
    "ECS was unable to assume the role '{}' that was provided for this task. Please verify that the role being passed "
    "has the proper trust relationship and permissions and that your IAM user has permissions to pass this role."
)
_OF_SERVICE = (
    "launchType",
    "capacityProviderStrategy",
    "networkConfiguration",
    "placementConstraints",
    "placementStrategy",
    "platformVersion",
    "enableECSManagedTags",
    "enableExecuteCommand",
    "propagateTags",
)
_OF_TASK = ("tags", "overrides", "enableExecuteCommand", "placementConstraints", "placementStrategy")


class EcsServices(EcsRequests):
    """What the controller keeps running, and tasks of users."""

    def create_service(self, asked: AwsRequest) -> Json:
        """Answer ``CreateService``."""
        given, cluster = asked.parameters, self.cluster(asked)
        definition = self._usable(given)
        name = self._controller.arn(f"service/{cluster['clusterName']}/{given['serviceName']}")
        old = self._state["services"].get(name)
        if old is not None and old["status"] == "DRAINING":
            refuse("InvalidParameterException", "Unable to Start a service that is still Draining.")
        if old is not None and old["status"] == "ACTIVE":
            if old["given"] != given:
                refuse("InvalidParameterException", "Creation of service was not idempotent.")
            return {"service": self._shown_service(old, asked)}
        self._check_network(given, definition)
        service: Json = {
            "serviceArn": name,
            "serviceName": given["serviceName"],
            "clusterArn": cluster["clusterArn"],
            "status": "ACTIVE",
            "taskDefinition": definition["taskDefinitionArn"],
            "desiredCount": given.get("desiredCount", 0),
            "runningCount": 0,
            "pendingCount": 0,
            "deploymentConfiguration": _deployment_configuration(given),
            "deploymentController": {"type": "ECS"},
            "schedulingStrategy": "REPLICA",
            "deployments": [],
            "events": [],
            "createdAt": wall_s(),
            "given": given,
            **({} if given.get("capacityProviderStrategy") else {"launchType": "EC2"}),
            **{each: given[each] for each in _OF_SERVICE if each in given},
        }
        self._state["services"][name] = service
        self.tag(name, asked)
        self._controller.deploy(service)
        self._controller.state.save()
        return {"service": self._shown_service(service, asked)}

    def update_service(self, asked: AwsRequest) -> Json:
        """Answer ``UpdateService``."""
        given = asked.parameters
        service = self._service(asked, given["service"])
        if service["status"] != "ACTIVE":
            refuse("ServiceNotActiveException", "Service was not ACTIVE.")
        changed = {each: given[each] for each in _OF_SERVICE if each in given}
        if "taskDefinition" in given:
            changed["taskDefinition"] = self._usable(given)["taskDefinitionArn"]
        deploys = given.get("forceNewDeployment") or any(service.get(key) != value for key, value in changed.items())
        service.update(changed)
        service["desiredCount"] = given.get("desiredCount", service["desiredCount"])
        if "deploymentConfiguration" in given:
            service["deploymentConfiguration"] = _deployment_configuration(given)
        if deploys:
            self._controller.deploy(service)
        self._controller.state.save()
        return {"service": self._shown_service(service, asked)}

    def delete_service(self, asked: AwsRequest) -> Json:
        """Answer ``DeleteService``."""
        service = self._service(asked, asked.parameters["service"])
        if service["status"] == "INACTIVE":
            refuse("ServiceNotActiveException", "Service was not ACTIVE.")
        if service["desiredCount"] > 0 and not asked.parameters.get("force"):
            refuse("InvalidParameterException", "The service cannot be stopped while it is scaled above 0.")
        service.update(status="DRAINING", desiredCount=0)
        self._controller.state.save()
        return {"service": self._shown_service(service, asked)}

    def list_services(self, asked: AwsRequest) -> Json:
        """Answer ``ListServices``."""
        kind = asked.parameters.get("launchType")
        own = [each for each in self.services_in(self.cluster(asked)) if each["status"] != "INACTIVE"]
        return page(
            asked, "serviceArns", [each["serviceArn"] for each in own if kind in {None, each.get("launchType")}], 10
        )

    def describe_services(self, asked: AwsRequest) -> Json:
        """Answer ``DescribeServices``."""
        names = asked.parameters["services"]
        if len(names) > 10:
            refuse("InvalidParameterException", "Members cannot be more than 10.")
        self.cluster(asked)
        found, failures = [], []
        for each in names:
            try:
                found.append(self._shown_service(self._service(asked, each), asked))
            except EcsError:
                failures.append(
                    self.missing("service", f"{self.cluster(asked)['clusterName']}/{each.rpartition('/')[2]}")
                )
        return {"services": found, "failures": failures}

    def run_task(self, asked: AwsRequest) -> Json:
        """Answer ``RunTask``."""
        given, cluster = asked.parameters, self.cluster(asked)
        definition, count = self._usable(given), given.get("count", 1)
        if not 1 <= count <= 10:
            refuse("InvalidParameterException", "Count must be between 1 and 10.")
        self._check_network(given, definition)
        settings: Json = {
            "clusterArn": cluster["clusterArn"],
            "group": given.get("group") or f"family:{definition['family']}",
            "startedBy": given.get("startedBy", ""),
            "launchType": given.get("launchType", "EC2"),
            **{each: given[each] for each in _OF_TASK if each in given},
        }
        tasks, failures = [], []
        for _ in range(count):
            placed, reason = self._controller.place(definition, settings)
            if reason:
                failures.append({"arn": next(iter(self._state["instances"]), cluster["clusterArn"]), "reason": reason})
            else:
                tasks.append(self._controller.tasks.start(definition, settings, placed))
        return {"tasks": tasks, "failures": failures}

    def stop_task(self, asked: AwsRequest) -> Json:
        """Answer ``StopTask``."""
        task = self._task(asked, asked.parameters["task"])
        if task is None:
            refuse("InvalidParameterException", "The referenced task was not found.")
        self._controller.tasks.stop(task, "UserInitiated", asked.parameters.get("reason") or "Task stopped by user")
        return {"task": task}

    def list_tasks(self, asked: AwsRequest) -> Json:
        """Answer ``ListTasks``."""
        given, cluster = asked.parameters, self.cluster(asked)
        wanted = {
            "clusterArn": cluster["clusterArn"],
            "desiredStatus": given.get("desiredStatus", "RUNNING"),
            "startedBy": given.get("startedBy"),
            "launchType": given.get("launchType"),
            "group": None,
        }
        if "serviceName" in given:
            service = self._service(asked, given["serviceName"])
            wanted["group"] = f"service:{service['serviceName']}"
        found = []
        for name, task in self._state["tasks"].items():
            family = task["taskDefinitionArn"].rpartition("/")[2].partition(":")[0]
            fits = all(value is None or task.get(key) == value for key, value in wanted.items())
            if fits and given.get("family") in {None, family}:
                found.append(name)
        return page(asked, "taskArns", found)

    def describe_tasks(self, asked: AwsRequest) -> Json:
        """Answer ``DescribeTasks``."""
        names = asked.parameters["tasks"]
        if len(names) > 100:
            refuse("InvalidParameterException", "Tasks cannot be more than 100.")
        found, failures = [], []
        for each in names:
            if (task := self._task(asked, each)) is None:
                failures.append(self.missing("task", f"{self.cluster(asked)['clusterName']}/{each.rpartition('/')[2]}"))
            else:
                shown = {key: value for key, value in task.items() if key != "tags"}
                has_tags = "TAGS" in asked.parameters.get("include", ())
                found.append({**shown, **({"tags": task.get("tags", [])} if has_tags else {})})
        return {"tasks": found, "failures": failures}

    def _service(self, asked: AwsRequest, name: str) -> Json:
        cluster = self.cluster(asked)
        place = self._controller.arn(f"service/{cluster['clusterName']}/{name.rpartition('/')[2]}")
        found: Json | None = self._state["services"].get(place)
        if found is None:
            refuse("ServiceNotFoundException", "Service not found.")
        return found

    def _task(self, asked: AwsRequest, name: str) -> Json | None:
        cluster = self.cluster(asked)
        place = self._controller.arn(f"task/{cluster['clusterName']}/{name.rpartition('/')[2]}")
        found: Json | None = self._state["tasks"].get(place)
        return found

    def _usable(self, given: Json) -> Json:
        definition = self.definition(given["taskDefinition"])
        if definition["status"] != "ACTIVE":
            refuse("ClientException", "TaskDefinition is inactive")
        role = definition.get("executionRoleArn")
        if role and role.rpartition("/")[2] not in self._state["roles"]:
            refuse("ClientException", _NO_ROLE.format(role))
        return definition

    def _check_network(self, given: Json, definition: Json) -> None:
        has = "awsvpcConfiguration" in given.get("networkConfiguration", {})
        if (definition["networkMode"] == "awsvpc") != has:
            must = (
                "must be provided when networkMode 'awsvpc' is specified"
                if not has
                else "is not valid for the given networkMode"
            )
            refuse("InvalidParameterException", f"Network Configuration {must}.")
        fargate = given.get("launchType") == "FARGATE"
        if fargate and "FARGATE" not in definition["compatibilities"]:
            refuse("InvalidParameterException", "Task definition does not support launch_type FARGATE.")
        if given.get("launchType") and given.get("capacityProviderStrategy"):
            refuse(
                "InvalidParameterException",
                "Specifying both a launch type and capacity provider strategy is not supported.",
            )
        if fargate and (given.get("placementConstraints") or given.get("placementStrategy")):
            refuse(
                "InvalidParameterException",
                "Placement strategies and constraints are not supported with FARGATE launch type.",
            )

    def _shown_service(self, service: Json, asked: AwsRequest) -> Json:
        shown = {key: value for key, value in service.items() if key not in {"given", "waits"}}
        return self.with_tags(shown, service["serviceArn"], asked)


def _deployment_configuration(given: Json) -> Json:
    default = {
        "maximumPercent": 200,
        "minimumHealthyPercent": 100,
        "deploymentCircuitBreaker": {"enable": False, "rollback": False},
    }
    return {**default, **given.get("deploymentConfiguration", {})}
