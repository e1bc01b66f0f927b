"""The objects of a job in Aurora: one task config, from which all instances are made. Pure.

A place is the id of an instance. Its number reaches the container as ``{{mesos.instance}}``, which Aurora's executor
replaces in the command. So instances with different containers have the same config.
"""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from heron_scheduler_aurora.options import AuroraOptions
from heron_scheduler_kit.managed.managed_job import ContainerRequest, ManagedJob
from heron_scheduler_kit.managed.rest_api import Json, fields, items

__all__ = [
    "HOST",
    "INSTANCE",
    "RUN",
    "Size",
    "added_instances",
    "comparable",
    "config_size",
    "job_key",
    "job_path",
    "metadata",
    "new_job",
    "sealed_text",
    "size_of",
    "task_config",
    "update_request",
]

INSTANCE = "{{mesos.instance}}"
HOST = "{{mesos.hostname}}"
RUN = "heron_run"
"""The metadata with the id of the run."""

_ADDED = "heron_instances"
_HOST = "host"  # the attribute that each agent of Aurora has
_PROCESS = "heron"
_MB = 1024 * 1024
_DISK_MB = 64  # the output that Mesos keeps, and the launch file
_DEFAULT_ENV = "default"  # of `heron submit`; it is no environment of Aurora
_IN_PLACE = 3  # starts of a launcher on one host, then the task fails and Aurora chooses another host
_READ_ONLY = 2


@dataclass(frozen=True, slots=True)
class Size:
    """Cores, MiB of memory and MiB of disk."""

    cpu: float
    memory_mb: int
    disk_mb: int

    def holds(self, other: Size) -> bool:
        """Return whether a task of this size is large enough for another one."""
        return self.cpu >= other.cpu and self.memory_mb >= other.memory_mb and self.disk_mb >= other.disk_mb


def size_of(requests: Iterable[ContainerRequest]) -> Size:
    """Return the size that each of these containers fits in."""
    wanted = tuple(requests)
    return Size(
        max(0.01, *(each.cpu for each in wanted)),
        max(32, *(each.memory_mb for each in wanted)),
        max(each.disk_mb for each in wanted) + _DISK_MB,
    )


def config_size(config: Json) -> Size:
    """Return the size of a task config."""
    found: Json = {}
    for each in items(config.get("resources")):
        found.update(each)
    cpu, memory_mb, disk_mb = (found.get(each, 0) for each in ("numCpus", "ramMb", "diskMb"))
    return Size(float(str(cpu)), int(str(memory_mb)), int(str(disk_mb)))


def job_key(job: ManagedJob, options: AuroraOptions) -> Json:
    """Return the key of a job: role and environment are those of ``heron submit PROFILE/ROLE/ENV``."""
    env = options.environment if job.env in {"", _DEFAULT_ENV} else job.env
    return {"role": job.role or job.owner, "environment": env, "name": job.topology}


def job_path(key: Mapping[str, object], cluster: str) -> str:
    """Return the name that Aurora's own tools use."""
    return f"{cluster}/{key['role']}/{key['environment']}/{key['name']}"


def task_config(
    job: ManagedJob, size: Size, options: AuroraOptions, command: str, avoided: Collection[str] = ()
) -> Json:
    """Return the config of instances of a size; `command` has `INSTANCE` for the place.

    They run on no host of `avoided`.
    """
    key = job_key(job, options)
    labels = {
        "heron_topology": job.topology,
        RUN: job.topology_id,
        "heron_owner": job.owner,
        "heron_role": job.role,
        "heron_env": job.env,
    }
    return {
        "job": key,
        "owner": {"user": job.owner or key["role"]},
        "isService": True,  # Aurora starts an instance again however it has ended
        "priority": options.priority,
        "maxTaskFailures": 1,
        "tier": options.tier,
        "resources": [{"numCpus": size.cpu}, {"ramMb": size.memory_mb}, {"diskMb": size.disk_mb}],
        "constraints": [_constraint(name, value) for name, value in _constraints(options, avoided)],
        "container": _container(options),
        "executorConfig": {"name": "AuroraExecutor", "data": _executor_data(key, size, options, command)},
        "metadata": [{"key": name, "value": value} for name, value in sorted(labels.items()) if value],
        "partitionPolicy": {"reschedule": True},
        **({"contactEmail": options.contact} if options.contact else {}),
    }


def new_job(job: ManagedJob, config: Json) -> Json:
    """Return the job configuration for the first instances, which have the ids from 0 on."""
    key = {"key": config["job"], "owner": config["owner"]}
    return {**key, "taskConfig": config, "instanceCount": len(job.containers), "cronCollisionPolicy": 0}


def update_request(places: Collection[int], config: Json, options: AuroraOptions, *, adds: bool = True) -> Json:
    """Return the job update that gives these instances a config of their own, and touches no other instance.

    `adds`: they do not exist yet.
    """
    settings = {
        "updateGroupSize": min(options.batch, len(places)),
        "waitForBatchCompletion": True,
        "maxPerInstanceFailures": 0,
        "maxFailedInstances": 0,
        "minWaitInInstanceRunningMs": options.watch_s * 1000,
        "rollbackOnFailure": True,
        "updateOnlyTheseInstances": _ranges(places),
    }
    labels = {_ADDED: " ".join(map(str, sorted(places))) if adds else "", RUN: metadata(config, RUN)}
    return {
        "taskConfig": config,
        "instanceCount": max(places) + 1,
        "settings": settings,
        "metadata": [{"key": name, "value": value} for name, value in labels.items() if value],
    }


def added_instances(update: Json) -> frozenset[int]:
    """Return the instances that a job update of `update_request` adds; empty for another update."""
    return frozenset(map(int, metadata(update, _ADDED).split()))


def comparable(config: Json) -> Json:
    """Return what makes two configs run alike, whatever the order in which Aurora keeps sets."""
    kept = ("container", "executorConfig", "isService", "priority", "tier")
    constraints = {str(each.get("name")): _plain(each.get("constraint")) for each in items(config.get("constraints"))}
    return {**{name: config.get(name) for name in kept}, "constraints": constraints}


def metadata(found: Json, name: str) -> str:
    """Return a value of the metadata of a config or an update; "" without one."""
    return next((str(each.get("value")) for each in items(found.get("metadata")) if each.get("key") == name), "")


def sealed_text(config: Json) -> str:
    """Return the sealed text in the command of a config; "" when it has none."""
    data = str(fields(config.get("executorConfig")).get("data") or "{}")
    processes = items(fields(fields(json.loads(data)).get("task")).get("processes"))
    words = shlex.split(str(processes[0].get("cmdline"))) if processes else []
    return words[-2] if len(words) > 1 else ""


def _executor_data(key: Json, size: Size, options: AuroraOptions, command: str) -> str:
    """Return what Thermos runs: one process, which it starts again in place a few times."""
    process = {
        "name": _PROCESS,
        "cmdline": command,
        "daemon": True,
        "ephemeral": False,
        "final": False,
        "max_failures": _IN_PLACE,
        "min_duration": 1,
    }
    task = {
        "name": key["name"],
        "processes": [process],
        "constraints": [],
        "finalization_wait": math.ceil(options.end_s),
        "max_failures": 1,
        "max_concurrency": 0,
        "resources": {"cpu": size.cpu, "ram": size.memory_mb * _MB, "disk": size.disk_mb * _MB},
    }
    document = {
        "cluster": options.cluster,
        "role": key["role"],
        "environment": key["environment"],
        "name": key["name"],
        "service": True,
        "priority": options.priority,
        "max_task_failures": 1,
        "enable_hooks": False,
        "task": task,
    }
    return json.dumps(document, sort_keys=True)


def _constraints(options: AuroraOptions, avoided: Collection[str]) -> list[tuple[str, str]]:
    """Return the constraints by attribute. Those about hosts that are excluded become one."""
    given = sorted(options.constraints.items())
    if not avoided:
        return given
    excluded = [value.removeprefix("!") for name, value in given if name == _HOST and value.startswith("!")]
    kept = [(name, value) for name, value in given if name != _HOST or not value.startswith("!")]
    return [*kept, (_HOST, f"!{','.join([*excluded, *sorted(avoided)])}")]


def _constraint(name: str, value: str) -> Json:
    if value.startswith("limit:"):
        return {"name": name, "constraint": {"limit": {"limit": int(value.removeprefix("limit:"))}}}
    values = [each.strip() for each in value.removeprefix("!").split(",")]
    return {"name": name, "constraint": {"value": {"negated": value.startswith("!"), "values": values}}}


def _container(options: AuroraOptions) -> Json:
    if not options.image:
        return {"mesos": {}}
    path = options.key_file
    if options.containerizer == "docker":
        volume = {"name": "volume", "value": f"{path}:{path}:ro"}
        return {"docker": {"image": options.image, "parameters": [volume]}}
    name, _, tag = options.image.rpartition(":") if ":" in options.image.rpartition("/")[2] else (options.image, "", "")
    volumes = [{"containerPath": path, "hostPath": path, "mode": _READ_ONLY}]
    return {"mesos": {"image": {"docker": {"name": name, "tag": tag or "latest"}}, "volumes": volumes}}


def _plain(constraint: object) -> Json:
    found = fields(constraint)
    values = fields(found.get("value")).get("values")
    if not isinstance(values, list):
        return found
    return {"negated": fields(found["value"]).get("negated"), "values": sorted(map(str, values))}


def _ranges(numbers: Collection[int]) -> list[Json]:
    found: list[Json] = []
    for each in sorted(numbers):
        if found and found[-1]["last"] == each - 1:
            found[-1]["last"] = each
        else:
            found.append({"first": each, "last": each})
    return found
