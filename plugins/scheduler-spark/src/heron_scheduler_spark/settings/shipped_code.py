"""Code that Spark copies to a worker (`py_files`), for the processes of a container, which Spark does not start."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from heron.errors import SchedulerError

__all__ = ["check_code", "code_names", "shipped_code"]

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*://?", re.IGNORECASE)


def check_code(key: str, paths: Sequence[str]) -> None:
    """Check that the paths on this machine are files; only Spark can check the others.

    Raises:
        SchedulerError: when one is not a file; `key` is the option that names it.
    """
    for each in paths:
        path = each.partition("#")[0].removeprefix("file://")
        if not _SCHEME.match(path) and not os.path.isfile(path):
            msg = f"scheduler.{key}: there is no file {path!r} on this machine; create it, or correct the path"
            raise SchedulerError(msg)


def code_names(py_files: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the files on a worker; the folder depends on Spark."""
    return tuple(os.path.basename(each.partition("#")[0]) for each in py_files)


def shipped_code(names: Sequence[str], path: Sequence[str]) -> list[str]:
    """Return the entries of a module search path that are such archives or hold such modules."""
    modules = [each for each in names if each.endswith(".py")]
    return [
        each
        for each in path
        if os.path.basename(each) in names or any(os.path.exists(os.path.join(each, module)) for module in modules)
    ]
