"""Code that Spark has brought to a worker (`py_files`), for the processes of a container, which are not Spark's."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from heron.errors import SchedulerError

__all__ = ["check_code", "code_names", "shipped_code"]

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*://?", re.IGNORECASE)


def check_code(key: str, paths: Sequence[str]) -> None:
    """Whether those that are files of this machine are there; of others only Spark can tell.

    Raises:
        SchedulerError: when one is not; `key` is where the profile names it.
    """
    for each in paths:
        path = each.partition("#")[0].removeprefix("file://")
        if not _SCHEME.match(path) and not os.path.isfile(path):
            msg = f"scheduler.{key}: there is no file {path!r} on this machine; make it, or correct the path"
            raise SchedulerError(msg)


def code_names(py_files: Sequence[str]) -> tuple[str, ...]:
    """What the files are called on a worker, wherever Spark puts them there."""
    return tuple(os.path.basename(each.partition("#")[0]) for each in py_files)


def shipped_code(names: Sequence[str], path: Sequence[str]) -> list[str]:
    """What of a Python's module search path is of those files: archives among them, and the folders of modules."""
    modules = [each for each in names if each.endswith(".py")]
    return [
        each
        for each in path
        if os.path.basename(each) in names or any(os.path.exists(os.path.join(each, module)) for module in modules)
    ]
