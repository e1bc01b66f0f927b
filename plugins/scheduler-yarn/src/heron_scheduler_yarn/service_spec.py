"""The services of a topology, as YARN gets them. Pure, and without secrets: every user of the cluster can read them.

An update adds a service, because YARN adds no component to a service that runs. So a service has the containers of one
submission or of one update, each as a component that has one container or none.
"""

from __future__ import annotations

import math
import re
import secrets
import shlex
from collections.abc import Mapping

from heron_scheduler_kit.managed.launcher import HOST_ADDRESS
from heron_scheduler_kit.managed.managed_job import ContainerRequest, ManagedJob
from heron_scheduler_kit.managed.rest_api import Json
from heron_scheduler_yarn.options import YarnOptions

__all__ = ["COMPONENT", "new_service_name", "service_spec"]

COMPONENT = "container-"
"""The beginning of the name of a component; the place follows."""

_NAME_CHARACTERS = 40  # of 63
_NEVER = str(2**31 - 1)
_FILE = "launch"
_ANYWHERE: Json = {
    "type": "AFFINITY_WITH_CARDINALITY",
    "scope": "NODE",
    "min_cardinality": 0,
    "max_cardinality": 1000,
}
_LAUNCHER = "heron_scheduler_kit.managed.launcher"
_WHEELS = "{{PWD}}/wheels"  # the node manager writes $PWD, the folder of the container, which goes with it
# The node manager knows its own host by name.
_ADDRESS = "$(getent ahostsv4 $NM_HOST | head -n 1 | cut -d' ' -f1)"


def new_service_name(topology: str) -> str:
    """Return a name for a new service, which no service had before; YARN takes lower case, digits and ``-``."""
    words = re.sub("[^a-z0-9]+", "-", topology.lower()).strip("-")[:_NAME_CHARACTERS].strip("-")
    return "-".join(filter(None, ("heron", words, secrets.token_hex(4))))


def service_spec(name: str, job: ManagedJob, files: Mapping[str, str], options: YarnOptions) -> Json:
    """Return the service with the places in `files`, which has the paths of their launch files."""
    about = {"topology": job.topology, "run": job.topology_id, "owner": job.owner, "role": job.role, "env": job.env}
    properties = {
        **{f"heron.{key}": value for key, value in about.items() if value},
        "yarn.service.readiness-check-interval.seconds": "1",  # 30 by default: a start would take as long
        # A launcher ends rarely by itself. Then its node starts it again, and YARN never ends the service for it.
        "yarn.service.container-failure.retry.max": "0",
        "yarn.service.container-failure-per-component.threshold": _NEVER,
        "yarn.service.node-blacklist.threshold": _NEVER,
        # Otherwise YARN counts the failures of a master for ever, and ends the service at the second one.
        "yarn.service.am-failure.validity-interval-ms": "60000",
        # 120 s by default: so long a new master waits for containers that were lost with the old one.
        "yarn.service.container-recovery.timeout.ms": "10000",
    }
    return {
        "name": name,
        "version": "1.0",
        "description": f"heron topology {job.topology[:_NAME_CHARACTERS]}",
        "components": [
            {**_component(each, files[each.place], options), **_placement(each.place, job, files, options)}
            for each in job.containers
            if each.place in files
        ],
        "configuration": {"env": options.env, "properties": properties},
        **({"queue": options.queue} if options.queue else {}),
    }


def _component(request: ContainerRequest, file: str, options: YarnOptions) -> Json:
    command = shlex.join(options.python_command(_LAUNCHER, _FILE, folder=_WHEELS))
    quoted = re.sub(r'(["$`\\])', r"\\\1", command)  # the node manager puts it into double quotes
    return {
        "name": f"{COMPONENT}{request.place}",
        "number_of_containers": 1,
        "restart_policy": "ALWAYS",
        "launch_command": f"{HOST_ADDRESS}=${{{HOST_ADDRESS}:-{_ADDRESS}}} exec {quoted}",
        "resource": {"cpus": max(1, math.ceil(request.cpu)), "memory": str(max(1, request.memory_mb))},
        "configuration": {"files": [{"type": "STATIC", "src_file": file, "dest_file": _FILE}]},
    }


def _placement(place: str, job: ManagedJob, files: Mapping[str, str], options: YarnOptions) -> Json:
    """Return the rules for the nodes of a place. The tag of a container is the name of its component."""
    rules: list[Json] = []
    if options.node_label:
        rules.append({"type": "AFFINITY", "scope": "NODE", "node_partitions": [options.node_label]})
    apart = [f"{COMPONENT}{each}" for each in job.managers if options.spread and each in files]
    if apart and place in job.managers:
        rules.append({"type": "ANTI_AFFINITY", "scope": "NODE", "target_tags": apart})
    elif apart and not rules:  # one that permits all: YARN 3.4.2 fails if only some components of a service have rules
        rules.append({**_ANYWHERE, "target_tags": [f"{COMPONENT}{place}"]})
    return {"placement_policy": {"constraints": rules}} if rules else {}
