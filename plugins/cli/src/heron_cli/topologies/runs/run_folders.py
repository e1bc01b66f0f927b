"""The folders of a run: a short private run directory for its sockets, and a folder for its logs, which is kept.

They are named first and made later, so that the state names a folder before the folder exists.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Collection
from pathlib import Path

from heron.driver_kit.private_files import make_private_dir
from heron.errors import UsageError
from heron.ipc.endpoint import check_run_dir

__all__ = [
    "RUN_DIR_PREFIX",
    "is_private_dir",
    "is_run_dir",
    "make_log_dir",
    "make_run_dir",
    "name_log_dir",
    "name_run_dir",
    "prune_logs",
    "run_parent",
]

RUN_DIR_PREFIX = "heron-"

_RUN_DIR = re.compile(RUN_DIR_PREFIX + "[a-z0-9_]{8}")

_KEPT_LOGS = 20


def run_parent(configured: str) -> Path:
    """Return the folder of run directories: `configured`, or else the system's folder for temporary files.

    Raises:
        UsageError: when the system has no folder for temporary files that can be written.
    """
    return Path(configured or _temporary()).absolute()


def name_run_dir(configured: str) -> Path:
    """Return the path of a new run directory, without making it.

    Raises:
        LimitExceededError: when socket paths in it could become too long.
        UsageError: as `run_parent` does.
    """
    path = run_parent(configured) / f"{RUN_DIR_PREFIX}{secrets.token_hex(4)}"
    check_run_dir(path)
    return path


def make_run_dir(path: Path) -> None:
    """Make the run directory, with mode 0700.

    Raises:
        UsageError: when it cannot be made, or exists already.
    """
    try:
        path.mkdir(mode=0o700)
    except OSError as error:
        msg = f"run.run_dir: no run directory can be made in {path.parent}: {error.strerror}; set run.run_dir or TMPDIR"
        raise UsageError(msg) from error


def is_run_dir(path: Path) -> bool:
    """Return whether a submission can have made the folder: a state changed by hand must not remove another one."""
    try:
        found = path.lstat()
    except OSError:
        return False
    return is_private_dir(found) and path.is_absolute() and _RUN_DIR.fullmatch(path.name) is not None


def is_private_dir(found: os.stat_result) -> bool:
    """Return whether this is a folder of the present user, and no other user may look into it."""
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not stat.S_IMODE(found.st_mode) & 0o077


def name_log_dir(parent: str, topology_id: str) -> Path:
    """Return the path of the folder for the logs of a run, without making it."""
    return Path(parent).absolute() / topology_id


def make_log_dir(path: Path) -> None:
    """Make the folder for the logs of a run, with mode 0700.

    Raises:
        UsageError: when it cannot be made.
    """
    try:
        make_private_dir(path)
    except OSError as error:
        msg = f"run.log_dir: {path} cannot be made: {error.strerror}; set run.log_dir to another folder"
        raise UsageError(msg) from error


def prune_logs(logs: Path, in_use: Collection[str]) -> None:
    """Remove all log folders except the twenty newest and those `in_use`."""
    try:
        folders = sorted((each.stat().st_mtime, each) for each in logs.iterdir() if each.is_dir())
    except OSError:
        return  # the folder does not exist, or a log folder was removed meanwhile
    for _, folder in folders[:-_KEPT_LOGS]:
        if str(folder) not in in_use:
            shutil.rmtree(folder, ignore_errors=True)


def _temporary() -> str:
    try:
        return tempfile.gettempdir()
    except FileNotFoundError as error:  # gettempdir has tried to write a file in each of its folders
        msg = f"run.run_dir: {error.strerror}; make room in one of them, or set run.run_dir or TMPDIR"
        raise UsageError(msg) from error
