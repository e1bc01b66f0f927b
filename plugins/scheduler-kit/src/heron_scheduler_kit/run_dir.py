"""The run directory of a job on a machine: sockets without keys lie in it, and so it has to be this user's alone."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from heron.driver_kit.private_files import make_private_dir
from heron.errors import SchedulerError

__all__ = ["own_run_dir"]


def own_run_dir(path: Path) -> bool:
    """Makes it where it is not there, and sees that nobody else may enter it; whether it was made.

    Raises:
        OSError: when it cannot be made.
        SchedulerError: when it is another's, others may enter it, or it is a link, which leads who knows where.
    """
    made = not os.path.lexists(path)
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
        message = f"run directory {path}: others may enter it, its mode is {mode:04o}; make it 0700"
        raise SchedulerError(message)
    return made
