"""The files of the repository and its distributions, read once."""

from __future__ import annotations

import hashlib
import json
import os
import re
import tomllib
from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeGuard

__all__ = ["Distribution", "Workspace", "normalized"]

_SKIPPED_FOLDERS = {"__pycache__", "node_modules"}
_SKIPPED_ENDS = (".pyc", ".egg-info")
_COMMANDS = "heron.command"


@dataclass(frozen=True, slots=True)
class Distribution:
    """What the ``pyproject.toml`` in `folder` says; `drivers` are names in profiles, `commands` those of ``heron``."""

    name: str
    folder: str
    requires: frozenset[str]
    scripts: frozenset[str]
    drivers: frozenset[str]
    commands: frozenset[str]
    pytest_plugins: tuple[str, ...]


class Workspace:
    """All files below `root`, by their path from it, except build results and folders that begin with a dot."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._texts: dict[str, str] = {}
        self._digests: dict[str, str] = {}

    @cached_property
    def files(self) -> tuple[str, ...]:
        """The paths, sorted."""
        found = []
        for folder, folders, names in os.walk(self.root):
            folders[:] = [each for each in folders if not _is_skipped(each)]
            found += [Path(folder, name).relative_to(self.root).as_posix() for name in names if not _is_skipped(name)]
        return tuple(sorted(found))

    @cached_property
    def distributions(self) -> dict[str, Distribution]:
        """By normalized name."""
        folders = [path.rpartition("/")[0] for path in self.files if path.endswith("/pyproject.toml")]
        found = [self._distribution(folder) for folder in folders if f"{folder}/pyproject.toml" in self._own_projects]
        return {each.name: each for each in found}

    @cached_property
    def python_path(self) -> tuple[str, ...]:
        """The folders that pytest puts on the path."""
        settings = _table(self._root_settings, "tool", "pytest", "ini_options").get("pythonpath", [])
        return tuple(map(str, settings)) if isinstance(settings, list) else ()

    @cached_property
    def pytest_settings(self) -> str:
        """What the root's ``pyproject.toml`` says to pytest, without the texts of marks."""
        settings = _table(self._root_settings, "tool", "pytest", "ini_options")
        return json.dumps({name: value for name, value in settings.items() if name != "markers"}, sort_keys=True)

    def below(self, folder: str) -> list[str]:
        """The files of a folder and of the folders in it; of ``""`` all."""
        if not folder:
            return list(self.files)
        after = chr(ord("/") + 1)
        return list(self.files[bisect_left(self.files, f"{folder}/") : bisect_left(self.files, f"{folder}{after}")])

    def text(self, path: str) -> str:
        """The text of a file; bytes that are not UTF-8 are replaced."""
        if path not in self._texts:
            self._texts[path] = (self.root / path).read_bytes().decode(errors="replace")
        return self._texts[path]

    def digest(self, path: str) -> str:
        """SHA-256 of a file's bytes."""
        if path not in self._digests:
            self._digests[path] = hashlib.sha256((self.root / path).read_bytes()).hexdigest()
        return self._digests[path]

    @cached_property
    def _root_settings(self) -> dict[str, object]:
        return tomllib.loads(self.text("pyproject.toml"))

    @cached_property
    def _own_projects(self) -> set[str]:
        pattern = re.compile(r"(heron-core|plugins/[^/]+)/pyproject\.toml")
        return {path for path in self.files if pattern.fullmatch(path)}

    def _distribution(self, folder: str) -> Distribution:
        settings = tomllib.loads(self.text(f"{folder}/pyproject.toml"))
        project = _table(settings, "project")
        lists = [project.get("dependencies", []), *_table(project, "optional-dependencies").values()]
        requires = [str(each) for values in lists if isinstance(values, list) for each in values]
        points = _table(project, "entry-points")
        return Distribution(
            name=normalized(str(project["name"])),
            folder=folder,
            requires=frozenset(normalized(re.split(r"[^\w.-]", each)[0]) for each in requires),
            scripts=frozenset(_table(project, "scripts")),
            drivers=frozenset(name for group in points if _holds_drivers(group) for name in _table(points, group)),
            commands=frozenset(_table(points, _COMMANDS)),
            pytest_plugins=tuple(map(str, _table(project, "entry-points", "pytest11").values())),
        )


def normalized(name: str) -> str:
    """The one spelling of a distribution's name."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _holds_drivers(entry_points: str) -> bool:
    return entry_points.startswith("heron.") and entry_points != _COMMANDS


def _is_skipped(name: str) -> bool:
    return name.startswith(".") or name in _SKIPPED_FOLDERS or name.endswith(_SKIPPED_ENDS)


def _table(settings: dict[str, object], *keys: str) -> dict[str, object]:
    for key in keys:
        value = settings.get(key, {})
        settings = value if _is_table(value) else {}
    return settings


def _is_table(value: object) -> TypeGuard[dict[str, object]]:
    return isinstance(value, dict)
