"""Code that Spark has brought to a worker (`py_files`), for the processes of a container, which are not Spark's."""

from __future__ import annotations

import os
from collections.abc import Sequence

__all__ = ["code_names", "shipped_code"]


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
