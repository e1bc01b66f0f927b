"""What the framework of a job tells Mesos: itself, and its tasks. Pure, besides the file that remembers it."""

from __future__ import annotations

import getpass
import os
import re
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from heron.driver_kit.private_files import write_private
from heron.errors import SchedulerError
from heron.spi.typed_values import decode_json
from heron_scheduler_kit.attempt_process import SEALED
from heron_scheduler_kit.job_folder import JobFolder, JobRecord
from heron_scheduler_kit.managed.launcher import HOST_ADDRESS
from heron_scheduler_kit.managed.rest_api import Json, fields
from heron_scheduler_mesos.offers import Launch
from heron_scheduler_mesos.options import MesosOptions
from heron_scheduler_mesos.tasks import Task

__all__ = [
    "FrameworkRecord",
    "accept",
    "error_message",
    "forget_ended",
    "framework_info",
    "is_gone",
    "keep_ended",
    "read_ended",
    "read_framework",
    "task_info",
    "write_framework",
]

_CAPABILITIES = ("MULTI_ROLE", "PARTITION_AWARE", "RESERVATION_REFINEMENT")
_PROCESS = "heron_scheduler_kit.attempt_process"
_GONE = re.compile(r"framework (has been |was )?(removed|completed|torn down)|completed framework", re.IGNORECASE)
_SECOND_NS = 1_000_000_000
_ATTACHED_S = 60.0  # the job of `heron run` ends with its supervisor; this is for a lost connection


@dataclass(frozen=True, slots=True)
class FrameworkRecord:
    """The framework of a job, as the file ``mesos.json`` in the job folder has it; no id after Mesos has removed it.

    `launches` counts the tasks of all frameworks of the job.
    """

    framework_id: str = ""
    tasks: tuple[Task, ...] = field(default=())
    launches: int = 0


def read_framework(folder: JobFolder) -> FrameworkRecord | None:
    """Return the framework of a job; None before its first subscription.

    Raises:
        SchedulerError: when the file cannot be read.
    """
    return _read(folder, folder.path / "mesos.json")


def read_ended(folder: JobFolder) -> FrameworkRecord | None:
    """Return the framework of a job that has ended, whose sandboxes Mesos keeps for a while; as `read_framework`."""
    return _read(folder, _ended(folder))


def keep_ended(folder: JobFolder, record: FrameworkRecord) -> None:
    """Write the framework of a job whose folder goes, so that its last output can be read. Raises OSError."""
    write_private(_ended(folder), msgspec.json.encode(record))


def forget_ended(folder: JobFolder) -> None:
    """Remove what `keep_ended` has written. Raises OSError."""
    _ended(folder).unlink(missing_ok=True)


def _ended(folder: JobFolder) -> Path:
    return folder.path.with_name(f".{folder.path.name}.ended")


def _read(folder: JobFolder, path: Path) -> FrameworkRecord | None:
    try:
        return decode_json(path.read_bytes(), FrameworkRecord)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        msg = (
            f"{path} cannot be read: {error}; end the framework heron-{folder.path.name} in Mesos, and remove the file"
        )
        raise SchedulerError(msg) from error


def write_framework(folder: JobFolder, record: FrameworkRecord) -> None:
    """Write the framework of a job. Raises OSError."""
    write_private(folder.path / "mesos.json", msgspec.json.encode(record))


def framework_info(record: JobRecord, options: MesosOptions, framework_id: str) -> Json:
    """Return the description of a framework.

    Without an id it ends with its connection: if the answer with the id is lost, nothing is left.
    """
    limit_s = min(options.failover_timeout_s, _ATTACHED_S) if record.attached else options.failover_timeout_s
    labels = {"heron_topology": record.topology, "heron_run": record.topology_id}
    return {
        "name": f"heron-{record.topology}",
        "user": options.user or getpass.getuser(),
        "roles": [options.role],
        "capabilities": [{"type": each} for each in _CAPABILITIES],
        "checkpoint": True,
        "failover_timeout": limit_s if framework_id else 0.0,
        "hostname": socket.gethostname(),
        "labels": {"labels": [{"key": key, "value": value} for key, value in labels.items()]},
        **({"principal": options.principal} if options.principal else {}),
        **({"id": {"value": framework_id}} if framework_id else {}),
    }


def task_info(task: Task, launch: Launch, record: JobRecord, options: MesosOptions, sealed: str) -> Json:
    """Return the description of a task; `sealed` is its launch file."""
    key_file = os.path.expanduser(options.key_file)
    command = options.python_command(_PROCESS, key_file, record.topology_id, task.task_id)
    env: Mapping[str, str] = {HOST_ADDRESS: urlsplit(task.agent).hostname or "", **options.env, SEALED: sealed}
    return {
        "name": f"heron-{record.topology}-container-{task.container_id}",
        "task_id": {"value": task.task_id},
        "agent_id": {"value": task.agent_id},
        "resources": list(launch.resources),
        "command": {
            "shell": False,
            "value": command[0],
            "arguments": list(command),
            "environment": {"variables": [{"name": key, "value": value} for key, value in env.items()]},
            **({"user": options.user} if options.user else {}),
        },
        "kill_policy": {"grace_period": {"nanoseconds": round(options.end_s * _SECOND_NS)}},
    }


def accept(offer_id: str, infos: Sequence[Json], refuse_s: float) -> Json:
    """Return the call that launches tasks on one offer; what they leave of it is not offered for `refuse_s` seconds."""
    launches = [{"type": "LAUNCH", "launch": {"task_infos": [each]}} for each in infos]
    body = {"offer_ids": [{"value": offer_id}], "operations": launches, "filters": {"refuse_seconds": refuse_s}}
    return {"type": "ACCEPT", "accept": body}


def error_message(event: Json) -> str:
    """Return the words of Mesos in an ERROR event."""
    return str(fields(event.get("error")).get("message") or event.get("message") or event)


def is_gone(message: str) -> bool:
    """Return whether an ERROR event says that Mesos has removed the framework, with all its tasks.

    After any other error, such as a missing right, its tasks may run on.
    """
    return _GONE.search(message) is not None
