"""What a cluster of ECS has: services, tasks and task definitions."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator

from heron.errors import SchedulerError
from heron_s3_kit.aws_api import AwsApi
from heron_s3_kit.s3_errors import S3Errors
from heron_scheduler_ecs.options import EcsOptions
from heron_scheduler_kit.managed.rest_api import Json, items

__all__ = ["ERRORS", "EcsApi"]

_PLACE = "correct scheduler.cluster or scheduler.aws.region"
_RIGHTS = f"allow this user the policy in the README of heron-scheduler-ecs, or {_PLACE}"

ERRORS = S3Errors(
    section="scheduler.aws",
    subject="job",
    space="remove objects",
    rights="the policy in the README of heron-scheduler-ecs",
    refused=SchedulerError,
    unanswered=SchedulerError,
    failed=SchedulerError,
    remedies={
        "": "correct the section scheduler of the profile",
        "ClusterNotFoundException": _PLACE,
        "AccessDeniedException": _RIGHTS,
    },
)
"""Refusals as errors of schedulers."""

_log = logging.getLogger(__name__)

_SERVICES = 10  # of one describe_services
_TASKS = 100  # of one describe_tasks


class EcsApi(AwsApi):
    """One account, region and cluster. Used from one thread."""

    def __init__(self, options: EcsOptions) -> None:
        """The first call connects."""
        super().__init__(options.aws, ERRORS, "ecs", f"ECS cluster {options.cluster}")
        self.named: Json = {"cluster": options.cluster}
        """The cluster, as an argument of requests."""

    def check(self) -> None:
        """Raise SchedulerError when the cluster does not run tasks."""
        asked: Json = {"clusters": [self.named["cluster"]]}
        found = items(self.call("ecs", "describe_clusters", asked).get("clusters"))
        if not found or found[0].get("status") != "ACTIVE":
            state = found[0].get("status") if found else "MISSING"
            msg = f"{self.where} is {state}; {_PLACE}"
            raise SchedulerError(msg)

    def services(self, names: Iterable[str]) -> dict[str, Json]:
        """Return the services with these names, also those that are ending or have ended."""
        found = [
            each
            for some in _chunks(list(names), _SERVICES)
            for each in items(self.call("ecs", "describe_services", {**self.named, "services": some})["services"])
        ]
        return {str(each["serviceName"]): each for each in found}

    def tasks(self, family: str) -> list[Json]:
        """Return the tasks of a family that ECS still knows: it forgets a stopped one after an hour."""
        asked = ({**self.named, "family": family, "desiredStatus": each} for each in ("RUNNING", "STOPPED"))
        arns = [arn for each in asked for arn in self.listed("ecs", "list_tasks", "taskArns", each)]
        return [
            each
            for some in _chunks(arns, _TASKS)
            for each in items(self.call("ecs", "describe_tasks", {**self.named, "tasks": some})["tasks"])
        ]

    def instance_ids(self, tasks: Iterable[Json]) -> dict[str, str]:
        """Return the ids in EC2 of the container instances of tasks, by their ARNs; none without the right to ask."""
        arns = sorted({str(each["containerInstanceArn"]) for each in tasks if each.get("containerInstanceArn")})
        found: list[Json] = []
        try:
            for some in _chunks(arns, _TASKS):
                asked = {**self.named, "containerInstances": some}
                found += items(self.call("ecs", "describe_container_instances", asked)["containerInstances"])
        except SchedulerError as error:
            _log.info("the instances of tasks are not known: %s", error)
        return {str(each["containerInstanceArn"]): str(each.get("ec2InstanceId", "")) for each in found}


def _chunks(values: list[str], most: int) -> Iterator[list[str]]:
    for begin in range(0, len(values), most):
        yield values[begin : begin + most]
