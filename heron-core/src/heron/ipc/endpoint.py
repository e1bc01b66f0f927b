"""Names of the sockets within a container: ipc paths in the run's 0700 directory.

What crosses containers has no name: it listens at a free port, and says where (`heron.ipc.socket.GuardedHub`).
"""

from __future__ import annotations

from pathlib import Path

from heron.errors import LimitExceededError

__all__ = [
    "PATH_LIMIT_BYTES",
    "check_run_dir",
    "container_dir",
    "executor_endpoint",
    "instance_endpoint",
    "metricsmgr_endpoint",
    "registration_endpoint",
]

PATH_LIMIT_BYTES = 107
"""``sun_path`` of a Unix socket less its final zero (Linux, unix(7))."""

_LONGEST_NAME = "c9999/i99999-9999999999-9999"


def check_run_dir(run_dir: Path) -> None:
    """Refuses a run directory in which a socket's path could become too long.

    Raises:
        LimitExceededError: when it could; names the limit and the remedy.
    """
    length = len(str(run_dir / _LONGEST_NAME).encode())
    if length > PATH_LIMIT_BYTES:
        msg = (
            f"run directory {run_dir}: socket paths in it may take {length} bytes, the limit is "
            f"{PATH_LIMIT_BYTES} bytes; set run.directory or TMPDIR to a shorter path"
        )
        raise LimitExceededError(msg)


def container_dir(run_dir: Path, container_id: int) -> Path:
    """The directory of one container within the run's."""
    return run_dir / f"c{container_id}"


def executor_endpoint(run_dir: Path, container_id: int) -> str:
    """Where an executor answers the processes of its container."""
    return f"ipc://{container_dir(run_dir, container_id)}/executor"


def metricsmgr_endpoint(run_dir: Path, container_id: int) -> str:
    """Where a metrics manager takes the records of its container."""
    return f"ipc://{container_dir(run_dir, container_id)}/metricsmgr"


def registration_endpoint(run_dir: Path, container_id: int) -> str:
    """Where a stream manager hears of its instances, whatever its incarnation."""
    return f"ipc://{container_dir(run_dir, container_id)}/stmgr"


def instance_endpoint(run_dir: Path, container_id: int, task_id: int, incarnation: int, attempt: int) -> str:
    """Where an instance waits for its stream manager, a new place for each session."""
    return f"ipc://{container_dir(run_dir, container_id)}/i{task_id}-{incarnation}-{attempt}"
