"""The objects of a job in Marathon: a group with an app for each container. Pure.

The group is ``GROUP/NAME``, the app of container N is ``GROUP/NAME/container-N``. Each app has one instance, and only
the sealed text that leads to its launch file.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Collection

from heron_scheduler_kit.managed.managed_job import ContainerRequest, ManagedJob
from heron_scheduler_kit.managed.rest_api import Json
from heron_scheduler_marathon.options import MarathonOptions

__all__ = ["RUN", "app", "app_id", "constraints", "group_id"]

RUN = "heron_run"
"""The label with the id of the run."""

_CLEAN = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
_NAME_CHARACTERS = 60  # Mesos makes the name of a folder of the path of an app and some 60 characters more
_DISK_MB = 64  # the output that Mesos keeps


def group_id(options: MarathonOptions, topology: str) -> str:
    """Return the path of the group of a topology: its name, as far as Marathon takes it."""
    if _CLEAN.fullmatch(topology) and len(topology) <= _NAME_CHARACTERS:
        return f"{options.group}/{topology}"
    digest = hashlib.sha256(topology.encode()).hexdigest()[:8]
    readable = re.sub(r"[^a-z0-9]+", "-", topology.lower())[: _NAME_CHARACTERS - 9].strip("-")
    return f"{options.group}/{readable}-{digest}" if readable else f"{options.group}/{digest}"


def app_id(options: MarathonOptions, topology: str, place: str) -> str:
    """Return the path of the app of a place."""
    return f"{group_id(options, topology)}/{place}"


def constraints(options: MarathonOptions, avoided: Collection[str] = ()) -> list[list[str]]:
    """Return the constraints of an app, which runs on no agent of `avoided`."""
    elsewhere = ["hostname", "UNLIKE", "|".join(map(re.escape, sorted(avoided)))]
    return [*(list(each) for each in options.constraints), *([elsewhere] if avoided else [])]


def app(
    job: ManagedJob, request: ContainerRequest, options: MarathonOptions, command: str, avoided: Collection[str] = ()
) -> Json:
    """Return the app of a container, which runs on no agent of `avoided`."""
    labels = {
        "heron_topology": job.topology,
        RUN: job.topology_id,
        "heron_container": str(request.container_id),
        "heron_owner": job.owner,
        "heron_role": job.role,
        "heron_env": job.env,
    }
    return {
        "id": app_id(options, job.topology, request.place),
        "cmd": command,
        "instances": 1,
        "cpus": max(0.001, request.cpu),
        "mem": max(32, request.memory_mb),
        "disk": request.disk_mb + _DISK_MB,
        "env": options.env,
        "labels": {key: value for key, value in labels.items() if value},
        "constraints": constraints(options, avoided),
        "portDefinitions": [],  # processes choose free ports; without this key, Marathon reserves one
        "taskKillGracePeriodSeconds": math.ceil(options.end_s),
        # A launcher restarts its executor itself. When the launcher ends, its agent may be the reason.
        "backoffSeconds": 1,
        "backoffFactor": 2.0,
        "maxLaunchDelaySeconds": options.max_launch_delay_s,
        # Two copies of a container do no harm: the older one ends when it sees the later attempt.
        "unreachableStrategy": {
            "inactiveAfterSeconds": options.unreachable_s,
            "expungeAfterSeconds": options.unreachable_s + 1,
        },
        "upgradeStrategy": {"minimumHealthCapacity": 0.0, "maximumOverCapacity": 0.0},
        **({"acceptedResourceRoles": list(options.roles)} if options.roles else {}),
        **({"user": options.user} if options.user else {}),
        **_image(options),
    }


def _image(options: MarathonOptions) -> Json:
    if not options.image:
        return {}
    key_file = {"containerPath": options.key_file, "hostPath": options.key_file, "mode": "RO"}
    container = {
        "type": options.containerizer.upper(),
        "docker": {"image": options.image},
        "volumes": [key_file],
    }
    return {"container": container, "networks": [{"mode": "host"}]}
