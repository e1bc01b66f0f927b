"""Puts a new plugin into a folder: whole, or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import cast

from heron.driver_kit.loading import load_object
from heron.errors import PluginError, known, nearest
from heron.spi.families import FAMILIES
from heron_testing.contracts.driver import DriverContract
from heron_testing.scaffold.plugin_files import plugin_files
from heron_testing.scaffold.plugin_names import PluginNames

__all__ = ["new_plugin"]


def new_plugin(family: str, name: str, into: Path) -> Path:
    """Writes the plugin FAMILY-NAME as a new folder in `into`, which exists, and returns that folder.

    What it holds installs, loads, passes ruff and mypy, and fails the cases of its contract that take work. The
    folder appears at once with everything in it; a process that is killed before leaves at most a hidden one.

    Raises:
        PluginError: when the family is unknown, the name is not one for a plugin, `into` is no folder, the plugin's
            folder is there already, or it cannot be written; nothing was changed.
    """
    if family not in FAMILIES:
        msg = f"no plugin family {family!r}{nearest(family, FAMILIES)}; known: {known(FAMILIES)}"
        raise PluginError(msg)
    contract = FAMILIES[family]
    names = PluginNames(family, name, contract.__name__)
    suite = load_object(f"heron_testing.contracts.{family}:{contract.__name__}Contract", "contract suite")
    target = into / names.folder
    _refuse_place(target)
    try:
        _put(plugin_files(names, contract, cast("type[DriverContract]", suite)), target)
    except OSError as error:
        msg = f"cannot write {target}: {error.strerror or error}; choose another folder with --into"
        raise PluginError(msg) from error
    return target


def _refuse_place(target: Path) -> None:
    if not target.parent.is_dir():
        msg = f"{target.parent} is no folder; make it first, or choose another with --into"
        raise PluginError(msg)
    if target.exists() or target.is_symlink():
        msg = f"{target} is there already; remove it, choose another name, or another folder with --into"
        raise PluginError(msg)


def _put(files: Mapping[PurePosixPath, str], target: Path) -> None:
    """Writes into a folder beside the target and renames that, so that nobody ever sees half of it."""
    unfinished = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        whole = unfinished / target.name  # has the modes that the user's umask gives
        for path, text in files.items():
            place = whole / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8")
        os.rename(whole, target)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
