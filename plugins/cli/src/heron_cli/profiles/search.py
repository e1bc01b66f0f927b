"""Finds the files of a profile: its own, and those that it extends.

The folders are, in this order: that of ``--config-path``, ``~/.heron/profiles``, the shipped one. The first file of a
name hides the others. A file that extends its own name extends the next file of that name. So a file ``local.yaml``
with ``extends: local`` in ``~/.heron/profiles`` changes the shipped profile instead of replacing it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from heron.errors import ConfigError, HeronError, known, nearest
from heron_cli.profiles.located import Located, Origin
from heron_cli.profiles.yaml_file import read_yaml

__all__ = ["ProfileEntry", "ProfileFile", "is_shipped", "profile_entries", "profile_names", "read_chain"]

_SHIPPED = Path(__file__).parent / "shipped"
_NAME = re.compile(r"[A-Za-z0-9_-]+")
_EXTENDS = "extends"


@dataclass(frozen=True, slots=True)
class ProfileFile:
    """A file that was read: its path and its own sections."""

    path: Path
    sections: dict[str, Located]


@dataclass(frozen=True, slots=True)
class ProfileEntry:
    """A profile in a list: its first comment, and what it extends; `error` says why it cannot be read."""

    name: str
    source: Path
    shipped: bool
    about: str = ""
    extends: tuple[str, ...] = ()
    error: str = ""


def profile_names(config_path: Path | None = None) -> dict[str, Path]:
    """Return the names of all profiles, each with its file.

    Raises:
        ConfigError: when `config_path` is not a folder.
    """
    return {name: files[0] for name, files in _files(config_path).items()}


def profile_entries(config_path: Path | None = None) -> tuple[ProfileEntry, ...]:
    """Return all profiles by name, each with the description in its file.

    Raises:
        ConfigError: when `config_path` is not a folder.
    """
    return tuple(_entry(name, path, config_path) for name, path in sorted(profile_names(config_path).items()))


def is_shipped(origin: Origin) -> bool:
    """Return whether a value was given in a shipped profile."""
    return origin.place.startswith(f"{_SHIPPED}/")


def read_chain(name: str, config_path: Path | None) -> tuple[ProfileFile, ...]:
    """Return the file of a profile, then the files that it extends, in order.

    Raises:
        ConfigError: when the profile does not exist, a file cannot be read, or the files extend each other in a cycle.
    """
    files = _files(config_path)
    if not _NAME.fullmatch(name) or name not in files:
        msg = f"no profile {name!r}{nearest(name, files)}; known: {known(files)}"
        raise ConfigError(msg)
    chain: list[ProfileFile] = []
    path: Path | None = files[name][0]
    while path is not None:
        sections, extends = _read(path)
        chain.append(ProfileFile(path, sections))
        path = None if extends is None else _base(extends, [each.path for each in chain], files)
    return tuple(chain)


def _files(config_path: Path | None) -> dict[str, list[Path]]:
    if config_path is not None and not config_path.is_dir():
        msg = f"--config-path: {str(config_path)!r} is not a folder; give a folder with NAME.yaml files"
        raise ConfigError(msg)
    given = () if config_path is None else (config_path,)
    found: dict[str, list[Path]] = {}
    for folder in (*given, Path.home() / ".heron" / "profiles", _SHIPPED):
        try:
            files = sorted(folder.glob("*.yaml"))
        except OSError as error:
            msg = f"{folder}: cannot be read: {error.strerror}; make it readable"
            raise ConfigError(msg) from error
        for each in files:
            found.setdefault(each.stem, []).append(each)
    return found


def _read(path: Path) -> tuple[dict[str, Located], Located | None]:
    document = read_yaml(path)
    if document.value is None:
        msg = f"{path}: is empty; add sections, or `{_EXTENDS}: local`"
        raise ConfigError(msg)
    if not isinstance(document.value, dict):
        kind = "a list" if isinstance(document.value, list) else f"{document.value!r:.80}"
        msg = f"{path}: {kind} is not a profile; it consists of sections such as `scheduler: {{driver: local}}`"
        raise ConfigError(msg)
    sections = dict(document.value)
    extends = sections.pop(_EXTENDS, None)
    if extends is not None and not isinstance(extends.value, str):
        msg = f"{extends.origin}: {_EXTENDS}: not the name of a profile; give one name"
        raise ConfigError(msg)
    return sections, extends


def _base(extends: Located, chain: list[Path], files: dict[str, list[Path]]) -> Path:
    name = str(extends.value)
    if name not in files:
        msg = f"{extends.origin}: {_EXTENDS}: no profile {name!r}{nearest(name, files)}; known: {known(files)}"
        raise ConfigError(msg)
    for path in files[name]:
        if path not in chain:
            return path
    cycle = " -> ".join((*(each.stem for each in chain), name))
    msg = f"{extends.origin}: {_EXTENDS}: {cycle} is a cycle; remove one `{_EXTENDS}`"
    raise ConfigError(msg)


def _entry(name: str, path: Path, config_path: Path | None) -> ProfileEntry:
    shipped = path.parent == _SHIPPED
    try:
        chain = read_chain(name, config_path)
    except HeronError as error:
        return ProfileEntry(name, path, shipped, error=str(error))
    first = path.read_text(encoding="utf-8-sig").partition("\n")[0]
    about = first.lstrip("# ").strip() if first.startswith("#") else ""
    return ProfileEntry(name, path, shipped, about, tuple(each.path.stem for each in chain[1:]))
