"""``--plugin-path``: plugins from a folder, without an installation.

A folder is either a project, with a `pyproject.toml` that declares entry points, or a folder of installed
distributions (``pip install --target``). A project's modules are in its folder ``src`` or in the folder itself.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import re
import sys
import threading
import tomllib
from collections.abc import Iterable, Sequence
from importlib.metadata import DistributionFinder
from os import PathLike
from pathlib import Path
from typing import cast

from heron.errors import UsageError

__all__ = ["add_plugin_path"]

_PROJECT = "pyproject.toml"
_changing = threading.Lock()  # a client may be opened in any thread, and Python's caches are emptied by one at a time


def add_plugin_path(folders: Sequence[Path]) -> None:
    """Make the plugins in the folders available to this process and to the processes that it starts.

    The folders of the modules go to the front of `sys.path` and of the variable ``PYTHONPATH``.

    Raises:
        UsageError: when a folder does not exist, or its `pyproject.toml` cannot be read.
    """
    if not folders:
        return
    projects = []
    imported = []
    for each in folders:
        folder = each.absolute()
        if not folder.is_dir():
            msg = f"--plugin-path: {str(each)!r} is not a folder; give a plugin project or a folder of distributions"
            raise UsageError(msg)
        imported.append(str(folder / "src" if (folder / "src").is_dir() else folder))
        if (folder / _PROJECT).is_file():
            projects.append(_Project(folder))
    with _changing:
        sys.path[:0] = [each for each in imported if each not in sys.path]
        inherited = [each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each]
        os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys([*imported, *inherited]))
        known = {each.project.folder for each in sys.meta_path if isinstance(each, _ProjectFinder)}
        sys.meta_path += [_ProjectFinder(each) for each in projects if each.folder not in known]
        importlib.invalidate_caches()


class _Project(importlib.metadata.Distribution):
    """The metadata of a project folder, from its `pyproject.toml`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        table = _project_table(folder / _PROJECT)
        name = table.get("name", folder.name)
        version = table.get("version", "0")
        self._texts = {
            "METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
            "entry_points.txt": _entry_points(table.get("entry-points")),
        }

    def read_text(self, filename: str) -> str | None:
        return self._texts.get(filename)

    def locate_file(self, path: str | PathLike[str]) -> Path:
        return self.folder / path


class _ProjectFinder(DistributionFinder):
    """Adds one project to the distributions that `importlib.metadata` finds; finds no modules."""

    def __init__(self, project: _Project) -> None:
        self.project = project

    def find_spec(self, *_: object) -> None:
        return None

    def find_distributions(
        self,
        context: DistributionFinder.Context = DistributionFinder.Context(),  # noqa: B008 - as in the base
    ) -> Iterable[importlib.metadata.Distribution]:
        own = _normalized(self.project.metadata["Name"])
        return [self.project] if context.name is None or _normalized(context.name) == own else []


def _normalized(name: str) -> str:
    """Return the name of a distribution in the form in which equal names are the same text."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _project_table(path: Path) -> dict[str, object]:
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8")).get("project", {})
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        msg = f"--plugin-path: {path} cannot be read: {error}; correct it"
        raise UsageError(msg) from error
    return cast("dict[str, object]", table) if isinstance(table, dict) else {}


def _entry_points(groups: object) -> str:
    lines = []
    for group, entries in groups.items() if isinstance(groups, dict) else ():
        lines.append(f"[{group}]")
        lines += [f"{name} = {value}" for name, value in entries.items()] if isinstance(entries, dict) else []
    return "\n".join(lines) + "\n"
