"""The addresses of the sockets within a container: Unix socket paths in the run directory, which has mode 0700.

Sockets between containers have no fixed address: they listen at a free port and publish it
(`heron.ipc.guarded_hub`).
"""

from __future__ import annotations

import re
from pathlib import Path

from heron.errors import LimitExceededError

__all__ = [
    "PATH_LIMIT_BYTES",
    "check_run_dir",
    "container_dir",
    "executor_endpoint",
    "instance_endpoint",
    "is_instance_endpoint",
    "metricsmgr_endpoint",
    "registration_endpoint",
]

PATH_LIMIT_BYTES = 107
"""The longest path of a Unix socket: ``sun_path`` without its final zero (Linux, unix(7))."""

_INSTANCE_NAME = re.compile(r"i[0-9]{1,10}-[0-9]{1,10}-[0-9]{1,10}")
_LONGEST_NAME = "c9999/i99999-9999999999-9999"


def check_run_dir(run_dir: Path) -> None:
    """Checks that the path of every socket in a run directory is short enough.

    Raises:
        LimitExceededError: when a path may be too long; names the limit and the remedy.
    """
    length = len(str(run_dir / _LONGEST_NAME).encode())
    if length > PATH_LIMIT_BYTES:
        msg = (
            f"run directory {run_dir}: socket paths in it may take {length} bytes, the limit is "
            f"{PATH_LIMIT_BYTES} bytes; set run.directory or TMPDIR to a shorter path"
        )
        raise LimitExceededError(msg)


def container_dir(run_dir: Path, container_id: int) -> Path:
    """The directory of one container in the run directory."""
    return run_dir / f"c{container_id}"


def executor_endpoint(run_dir: Path, container_id: int) -> str:
    """The address at which an executor answers the processes of its container."""
    return f"ipc://{container_dir(run_dir, container_id)}/executor"


def metricsmgr_endpoint(run_dir: Path, container_id: int) -> str:
    """The address at which a metrics manager receives the records of its container."""
    return f"ipc://{container_dir(run_dir, container_id)}/metricsmgr"


def registration_endpoint(run_dir: Path, container_id: int) -> str:
    """The address at which every incarnation of a stream manager receives the hellos of its instances."""
    return f"ipc://{container_dir(run_dir, container_id)}/stmgr"


def instance_endpoint(run_dir: Path, container_id: int, task_id: int, incarnation: int, attempt: int) -> str:
    """The address at which an instance waits for its stream manager; each session has a new one."""
    return f"ipc://{container_dir(run_dir, container_id)}/i{task_id}-{incarnation}-{attempt}"


def is_instance_endpoint(endpoint: str, run_dir: Path, container_id: int) -> bool:
    """Whether an endpoint that an instance names has the form of `instance_endpoint`, in this container."""
    folder, _, name = endpoint.rpartition("/")
    return folder == f"ipc://{container_dir(run_dir, container_id)}" and _INSTANCE_NAME.fullmatch(name) is not None
