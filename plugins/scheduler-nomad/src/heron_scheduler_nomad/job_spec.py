"""The objects of a job in Nomad: a job with a group for each container, and variables. Pure.

| object | name | what it is |
|---|---|---|
| variable | ``nomad/jobs/JOB`` | the stored job |
| variable | ``nomad/jobs/JOB/container-N/heron`` | a launch file, which only this task and users with rights can read |
| job | ``heron-NAME`` | the groups ``container-N``, each with the one task ``heron`` |
"""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Collection, Mapping

from heron_scheduler_kit.managed.launcher import HOST_ADDRESS
from heron_scheduler_kit.managed.managed_job import ContainerRequest, ManagedJob
from heron_scheduler_kit.managed.rest_api import Json, items
from heron_scheduler_nomad.options import NomadOptions

__all__ = ["LAUNCH", "TASK", "changed_job", "job_name", "job_variable", "launch_items", "launch_variable"]

TASK = "heron"
"""The name of the task of each group; short, because it is in the path of a unix socket."""

LAUNCH = "launch"
"""The item of a variable with a launch file, in base64."""

_NAME_CHARACTERS = 80  # the path of a variable has at most 128
_SECOND_NS = 1_000_000_000
_LOG_MB, _LOG_FILES = 10, 3
_DISK_MB = 2 * _LOG_MB * _LOG_FILES + 10  # both logs of the task, and its secrets
_LOCAL = "${attr.unique.network.ip-address}"
_NODE = "${node.unique.id}"
_NODE_NAME = "${node.unique.name}"
_PLACE_PROCESS = "heron_scheduler_nomad.place_process"
_WHEELS = "${NOMAD_TASK_DIR}/wheels"  # it goes with the allocation


def job_name(topology: str) -> str:
    """Return the name of a job: that of its topology, as far as Nomad takes it."""
    if len(topology) <= _NAME_CHARACTERS:
        return f"heron-{topology}"
    digest = hashlib.sha256(topology.encode()).hexdigest()[:8]
    return f"heron-{topology[: _NAME_CHARACTERS - 9]}-{digest}"


def job_variable(topology: str) -> str:
    """Return the path of the variable with the stored job."""
    return f"nomad/jobs/{job_name(topology)}"


def launch_variable(topology: str, place: str) -> str:
    """Return the path of the variable with a launch file. Nomad lets the task of that name read it."""
    return f"{job_variable(topology)}/{place}/{TASK}"


def launch_items(launch: bytes) -> Mapping[str, str]:
    """Return the items of the variable with a launch file."""
    return {LAUNCH: base64.b64encode(launch).decode()}


def changed_job(
    job: ManagedJob, options: NomadOptions, registered: Json, avoided: Collection[str] = (), moved: str = ""
) -> Json:
    """Return what to register for a job.

    `registered` is what Nomad has, or empty. Its groups stay as they are, so that their containers run on whatever
    the profile says now. New groups, and the place `moved`, get no client that has one of the names `avoided`. Nomad
    replaces an allocation whose client does not fit any more, and no other one.
    """
    known = {str(each.get("Name")): each for each in items(registered.get("TaskGroups"))}
    rules = [{"LTarget": _NODE_NAME, "Operand": "!=", "RTarget": each} for each in sorted(avoided)]
    groups = []
    for each in job.containers:
        group = known.get(each.place) or _group(each, options)
        changed = each.place == moved or each.place not in known
        groups.append({**group, "Constraints": rules} if changed else group)
    return {**(registered or _job(job, options)), "TaskGroups": groups, "Stop": False}


def _job(job: ManagedJob, options: NomadOptions) -> Json:
    meta = {
        "heron_topology": job.topology,
        "heron_run": job.topology_id,
        "heron_owner": job.owner,
        "heron_role": job.role,
        "heron_env": job.env,
    }
    constraints = [
        {"LTarget": attribute, "Operand": operator, "RTarget": value}
        for attribute, operator, value in options.constraints
    ]
    if options.containers_per_client:
        limit = str(options.containers_per_client)
        constraints.append({"LTarget": _NODE, "Operand": "distinct_property", "RTarget": limit})
    return {
        "ID": job_name(job.topology),
        "Name": job_name(job.topology),
        "Type": "service",
        "Priority": options.priority,
        "Datacenters": list(options.datacenters),
        "Meta": {key: value for key, value in meta.items() if value},
        "Constraints": constraints,
        "Update": {"MaxParallel": 0},  # no deployments: `heron update` decides what changes, and waits for it
        **({"NodePool": options.node_pool} if options.node_pool else {}),
    }


def _group(request: ContainerRequest, options: NomadOptions) -> Json:
    return {
        "Name": request.place,
        "Count": 1,
        "Meta": {"heron_container": str(request.container_id)},
        "EphemeralDisk": {"SizeMB": request.disk_mb + _DISK_MB},
        # A launcher restarts its executor itself. When the launcher ends, its client may be the reason: try another.
        "RestartPolicy": {
            "Attempts": 2,
            "Interval": 60 * _SECOND_NS,
            "Delay": _SECOND_NS,
            "Mode": "fail",
        },
        "ReschedulePolicy": {
            "Unlimited": True,
            "Delay": 5 * _SECOND_NS,  # the shortest that Nomad takes
            "DelayFunction": "exponential",
            "MaxDelay": 60 * _SECOND_NS,
        },
        "Tasks": [_task(request, options)],
    }


def _task(request: ContainerRequest, options: NomadOptions) -> Json:
    command, *args = options.python_command(_PLACE_PROCESS, folder=_WHEELS)
    config: Json = {"command": command, "args": args}
    if options.image:
        config.update(image=options.image, network_mode="host")
    return {
        "Name": TASK,
        "Driver": options.task_driver,
        "User": options.user,
        "Config": {**config, **options.task_config},
        "Env": {HOST_ADDRESS: _LOCAL, **options.env},
        "Identity": {"Env": True},
        "Resources": {
            "CPU": max(1, math.ceil(request.cpu * options.cpu_mhz)),
            "MemoryMB": max(10, request.memory_mb),
        },
        "KillSignal": "SIGTERM",
        "KillTimeout": math.ceil(options.end_s * _SECOND_NS),
        "LogConfig": {"MaxFiles": _LOG_FILES, "MaxFileSizeMB": _LOG_MB},
    }
