"""The folders of a run: a short private one for its sockets, and one for its logs that is kept."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from heron.errors import UsageError
from heron.ipc.endpoint import check_run_dir
from heron.kernel.private_dir import make_private_dir

__all__ = ["make_log_dir", "make_run_dir"]

_KEPT_LOGS = 20


def make_run_dir(parent: str) -> Path:
    """A new empty folder, mode 0700, in `parent` or else in the system's folder for temporary files.

    Raises:
        LimitExceededError: when socket paths in it could become too long.
        UsageError: when it cannot be made.
    """
    where = Path(parent or _temporary()).absolute()
    check_run_dir(where / "heron-12345678")  # as mkdtemp names it
    try:
        return Path(tempfile.mkdtemp(prefix="heron-", dir=where))
    except OSError as error:
        msg = f"run.run_dir: no run directory can be made in {where}: {error.strerror}; set run.run_dir or TMPDIR"
        raise UsageError(msg) from error


def _temporary() -> str:
    try:
        return tempfile.gettempdir()
    except FileNotFoundError as error:  # it has tried to write a file in each
        msg = f"run.run_dir: {error.strerror}; make room in one of them, or set run.run_dir or TMPDIR"
        raise UsageError(msg) from error


def make_log_dir(parent: str, topology_id: str) -> Path:
    """A new folder for the logs of a run; of earlier runs the newest nineteen are kept.

    Raises:
        UsageError: when it cannot be made.
    """
    logs = Path(parent).absolute()
    try:
        make_private_dir(logs / topology_id)
        _prune(logs)
    except OSError as error:
        msg = f"run.log_dir: {logs / topology_id} cannot be made: {error.strerror}; set run.log_dir to another folder"
        raise UsageError(msg) from error
    return logs / topology_id


def _prune(logs: Path) -> None:
    folders = sorted((each.stat().st_mtime, each) for each in logs.iterdir() if each.is_dir())
    for _, folder in folders[:-_KEPT_LOGS]:
        shutil.rmtree(folder, ignore_errors=True)
