"""The folder in which a child notes its process id, as the protocol has it.

Its name has the process of the task. A task that is killed cannot remove its folder, so the next task does.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

__all__ = ["make_pid_folder"]


def make_pid_folder() -> Path:
    """Make a folder, and remove those of processes of this user that have ended."""
    prefix = f"heron-child-{os.stat('/proc/self/ns/pid').st_ino}-"  # containers may share a folder for temporary files
    for each in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        pid = each.name.removeprefix(prefix).partition("-")[0]
        if not Path("/proc", pid).exists():
            shutil.rmtree(each, ignore_errors=True)  # one of another user stays
    return Path(tempfile.mkdtemp(prefix=f"{prefix}{os.getpid()}-"))
