"""A streamparse project: the folder with config.json above the file of a topology."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from heron.author_text import short_text
from heron.errors import ConfigError, known, nearest

__all__ = ["Environment", "Project", "find_project"]

_CONFIG = "config.json"
_LEVELS = 4  # between the file of a topology and its project; streamparse itself has one


@dataclass(frozen=True, slots=True)
class Environment:
    """An environment of config.json; its name is "" where a topology has no project."""

    name: str
    settings: Mapping[str, object]

    @property
    def options(self) -> Mapping[str, object]:
        """The section ``options``."""
        found = self.settings.get("options")
        return found if isinstance(found, dict) else {}


@dataclass(frozen=True, slots=True)
class Project:
    """The folder of a project and its config.json, which is read when an environment is chosen."""

    folder: Path

    @property
    def source_folders(self) -> tuple[Path, ...]:
        """The folders that topologies import from besides their own."""
        src = self.folder / "src"
        return (src,) if src.is_dir() else ()

    def environment(self, name: str | None) -> Environment:
        """Return the environment of that name; without a name, the only one.

        Raises:
            ConfigError: when config.json cannot be read, or does not have the environment; lists the names.
        """
        place = str(self.folder / _CONFIG)
        found = _read(place).get("envs")
        environments = found if isinstance(found, dict) else {}
        if name is None:
            if not environments:
                return Environment("", {})
            if len(environments) > 1:
                msg = (
                    f"{place}: there are {len(environments)} environments, {known(environments)}; choose one: "
                    f"heron run FILE -- --environment {min(environments)}"
                )
                raise ConfigError(msg)
            (name,) = environments
        if name not in environments:
            close = nearest(name, environments)
            msg = f"{place}: no environment {short_text(name)}{close}; known: {known(environments)}"
            raise ConfigError(msg)
        settings = environments[name]
        for part, value in (("", settings), (".options", settings.get("options", {}) if settings else {})):
            if not isinstance(value, dict):
                msg = f"{place}: envs.{name}{part}: {short_text(value)} is not an object; give {{...}}"
                raise ConfigError(msg)
        return Environment(name, settings)


def find_project(path: Path) -> Project | None:
    """Return the project of the topology file at `path`, or None."""
    for folder in path.resolve().parents[:_LEVELS]:
        config = folder / _CONFIG
        if config.is_file() and b'"envs"' in config.read_bytes():
            return Project(folder)
    return None


def _read(place: str) -> dict[str, object]:
    try:
        found: object = json.loads(Path(place).read_bytes())
    except (OSError, ValueError) as error:
        msg = f"{place}: cannot be read: {error}; correct it"
        raise ConfigError(msg) from error
    if not isinstance(found, dict):
        msg = f"{place}: {short_text(found)} is not an object; give {{...}}"
        raise ConfigError(msg)
    return found
