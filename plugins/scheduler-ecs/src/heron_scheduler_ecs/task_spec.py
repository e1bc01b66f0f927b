"""The objects of a topology in AWS. Pure.

| object | name | what it is |
|---|---|---|
| object in S3 | ``PREFIX/TOPOLOGY.json`` | the stored job |
| secret | ``heron/TOPOLOGY/PLACE`` | a launch file, which only ECS and users with rights can read |
| task definition | ``heron-TOPOLOGY``, a revision for each container | command, size, and the ARN of the secret |
| service | ``heron-TOPOLOGY-PLACE`` | keeps one task running |

A place is ``CONTAINER-RANDOM``: AWS keeps the names of removed services and secrets for some time.
"""

from __future__ import annotations

import base64
import hashlib
import math
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass

from heron_scheduler_ecs.options import EcsOptions
from heron_scheduler_ecs.task_size import DISK_MB, TaskSize, ec2_size, fargate_size
from heron_scheduler_kit.managed.managed_job import ContainerRequest, ManagedJob
from heron_scheduler_kit.managed.rest_api import Json, fields

__all__ = ["LAUNCH", "TopologyObjects", "covers", "new_place"]

LAUNCH = "HERON_LAUNCH"
"""The variable with a launch file, in base64."""

_CONTAINER = "heron"  # the container of each task
_MODULE = "heron_scheduler_ecs.task_process"
_TOKEN_CHARACTERS = 32


@dataclass(frozen=True, slots=True)
class TopologyObjects:
    """The names of the objects of a topology, and what the requests for them have.

    No task starts on an instance of EC2 whose id is in `avoided`.
    """

    topology: str
    options: EcsOptions
    avoided: frozenset[str] = frozenset()

    @property
    def family(self) -> str:
        """The family of the task definitions."""
        return f"heron-{self.topology}"

    @property
    def services(self) -> re.Pattern[str]:
        """A pattern of the ARNs of all services; its group is the place."""
        return re.compile(rf".*/heron-{re.escape(self.topology)}-(\d+-[0-9a-f]{{8}})")

    def service(self, place: str) -> str:
        """Return the name of the service of a place."""
        return f"{self.family}-{place}"

    def secret(self, place: str) -> str:
        """Return the name of the secret with the launch file of a place."""
        return f"heron/{self.topology}/{place}"

    def log_stream(self, place: str, task: str) -> str:
        """Return the log stream of a task, by its id."""
        return f"{self.service(place)}/{_CONTAINER}/{task}"

    def size(self, request: ContainerRequest) -> TaskSize:
        """Return the size of a task. Raises SchedulerError when Fargate has none for it."""
        return fargate_size(request) if self.options.launch_type == "FARGATE" else ec2_size(request)

    def secret_spec(self, job: ManagedJob, request: ContainerRequest, launch: bytes) -> Json:
        """Return the secret of a container."""
        tags = [{"Key": each["key"], "Value": each["value"]} for each in _tags(job, request)]
        return {"Name": self.secret(request.place), "SecretString": base64.b64encode(launch).decode(), "Tags": tags}

    def task_definition(self, job: ManagedJob, request: ContainerRequest, secret_arn: str, region: str) -> Json:
        """Return the task definition of a container."""
        options, size = self.options, self.size(request)
        command, *arguments = options.python_command(_MODULE)
        log = {
            **options.log_options,
            "awslogs-group": options.log_group,
            "awslogs-region": region,
            "awslogs-stream-prefix": self.service(request.place),
        }
        container = {
            "name": _CONTAINER,
            "image": options.image,
            "essential": True,
            "entryPoint": [command],
            "command": arguments,
            "environment": [{"name": key, "value": value} for key, value in options.env.items()],
            "secrets": [{"name": LAUNCH, "valueFrom": secret_arn}],
            "stopTimeout": math.ceil(options.end_s),
            "logConfiguration": {"logDriver": "awslogs", "options": log},
            **({"user": options.user} if options.user else {}),
        }
        larger = options.launch_type == "FARGATE" and request.disk_mb > DISK_MB
        return {
            "family": self.family,
            "networkMode": "awsvpc",
            "requiresCompatibilities": [options.launch_type],
            "runtimePlatform": {"cpuArchitecture": options.architecture, "operatingSystemFamily": "LINUX"},
            "cpu": str(size.cpu_units),
            "memory": str(size.memory_mb),
            "executionRoleArn": options.execution_role,
            "containerDefinitions": [container],
            "tags": _tags(job, request),
            **({"taskRoleArn": options.task_role} if options.task_role else {}),
            **({"ephemeralStorage": {"sizeInGiB": math.ceil(request.disk_mb / 1024)}} if larger else {}),
        }

    def service_spec(self, job: ManagedJob, request: ContainerRequest, definition_arn: str) -> Json:
        """Return the service of a container."""
        options, name = self.options, self.service(request.place)
        return {
            "cluster": options.cluster,
            "serviceName": name,
            "clientToken": hashlib.sha256(name.encode()).hexdigest()[:_TOKEN_CHARACTERS],
            "taskDefinition": definition_arn,
            "desiredCount": 1,
            "deploymentConfiguration": {
                "deploymentCircuitBreaker": {"enable": True, "rollback": False},
                "maximumPercent": 100,  # never two tasks at once
                "minimumHealthyPercent": 0,
            },
            "availabilityZoneRebalancing": "DISABLED",  # it would start a second task
            "networkConfiguration": {
                "awsvpcConfiguration": {
                    "subnets": options.subnets,
                    "securityGroups": options.security_groups,
                    "assignPublicIp": "ENABLED" if options.assign_public_ip else "DISABLED",
                }
            },
            "propagateTags": "SERVICE",
            "tags": _tags(job, request),
            **self._capacity(job, request.place),
        }

    def moved_service(self, job: ManagedJob, place: str) -> Json:
        """Return the update of the service of a container that ends its task and starts one where it may run now."""
        constraints = self._capacity(job, place)["placementConstraints"]
        service = {"cluster": self.options.cluster, "service": self.service(place)}
        return {**service, "placementConstraints": constraints, "forceNewDeployment": True}

    def _capacity(self, job: ManagedJob, place: str) -> Json:
        """Return where ECS places the task: a launch type or capacity providers, and on EC2 which instances."""
        options, providers = self.options, self.options.capacity_providers
        strategy = [{"capacityProvider": each.name, "weight": each.weight, "base": each.base} for each in providers]
        made: Json = {"capacityProviderStrategy": strategy} if strategy else {"launchType": options.launch_type}
        if options.launch_type == "EC2":
            others = set(job.managers) - {place} if options.managers_apart and place in job.managers else set()
            apart = [f"not(task:group == service:{self.service(each)})" for each in sorted(others)]
            ids = ", ".join(sorted(self.avoided))
            apart += [f"not(ec2InstanceId in [{ids}])"] if ids else []
            expressions = [*options.placement_constraints, *apart]
            made["placementConstraints"] = [{"type": "memberOf", "expression": each} for each in expressions]
            made["placementStrategy"] = [
                {"type": kind, **({"field": field} if field else {})} for kind, field in options.placement_strategies
            ]
        return made


def new_place(container_id: int) -> str:
    """Return a place that no container has had before."""
    return f"{container_id}-{secrets.token_hex(4)}"


def covers(found: object, wanted: object) -> bool:
    """Return whether a described object has all that is wanted. AWS adds defaults, and may order lists by itself."""
    if isinstance(wanted, Mapping):
        return all(covers(fields(found).get(str(key)), value) for key, value in wanted.items() if key != "tags")
    if isinstance(wanted, list):
        theirs = found if isinstance(found, list) else []
        return len(theirs) == len(wanted) and all(any(covers(each, mine) for each in theirs) for mine in wanted)
    return found == wanted


def _tags(job: ManagedJob, request: ContainerRequest) -> list[dict[str, str]]:
    """Return what people see of a container: topology, run, owner."""
    container = str(request.container_id)
    names = {"topology": job.topology, "run": job.topology_id, "container": container, "owner": job.owner}
    known = {**names, "role": job.role, "env": job.env}
    return [{"key": f"heron:{key}", "value": value} for key, value in known.items() if value]
