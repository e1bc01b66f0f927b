"""Run directories on a worker whose containers were killed together with all above them: nobody else removes them."""

from __future__ import annotations

import os
import re
import shutil
import stat
from pathlib import Path

from heron.clock import wall_s
from heron_scheduler_spark.predecessor import noted_executor

__all__ = ["sweep"]

_NAME = re.compile(r"heron-[a-z0-9_]{8}")
_QUIET_S = 60.0  # a container that is just being started has changed its run directory, and is not noted in it yet


def sweep(run_dir: Path) -> None:
    """Removes those beside `run_dir` in which containers of this user have run and none does any more."""
    try:
        beside = [each for each in run_dir.parent.iterdir() if each != run_dir and _NAME.fullmatch(each.name)]
    except OSError:
        return
    for path in beside:
        if _is_stale(path):
            shutil.rmtree(path, ignore_errors=True)


def _is_stale(path: Path) -> bool:
    try:
        found = path.lstat()
        private = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077
        if not private or wall_s() - found.st_mtime < _QUIET_S:
            return False
        executors = [noted_executor(each) for each in path.glob("c*.executor")]
    except OSError:
        return False
    noted = [each for each in executors if each is not None]
    return bool(noted) and all(each.is_from_here() and not each.alive() for each in noted)
