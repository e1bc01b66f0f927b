"""The run directory of an executor, which is private. Commands make it too, and start no executor."""

from __future__ import annotations

import os
import shlex
import stat
from pathlib import Path

from heron.driver_kit.private_files import make_private_dir
from heron.errors import SchedulerError

__all__ = ["own_run_dir"]


def own_run_dir(path: Path) -> bool:
    """Create the run directory if it is missing, check that only this user can enter it, return whether it was created.

    Sockets without keys are in that directory, so it must be private.

    Raises:
        OSError: when it cannot be created.
        SchedulerError: when it belongs to another user, is open to other users, or is a link.
    """
    created = not os.path.lexists(path)
    make_private_dir(path)
    found = path.lstat()
    mode = stat.S_IMODE(found.st_mode)
    if not stat.S_ISDIR(found.st_mode):
        message = f"run directory {path}: is a link; remove it, or set run.run_dir to another folder"
        raise SchedulerError(message)
    if found.st_uid != os.getuid():
        message = f"run directory {path}: belongs to user {found.st_uid}; set run.run_dir to a folder of your own"
        raise SchedulerError(message)
    if mode & 0o077:
        modes = f"its mode is {mode:04o}, and must be 0700"
        message = f"run directory {path}: others may enter it, {modes}; `chmod 700 {shlex.quote(str(path))}`"
        raise SchedulerError(message)
    return created
