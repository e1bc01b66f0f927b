"""``heron plugins new``: writes a new plugin into a folder, either completely or not at all."""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import cast

import click

from heron.driver_kit.loading import load_object
from heron.errors import PluginError, known, nearest
from heron.spi.families import FAMILIES
from heron_testing.contracts.driver import DriverContract
from heron_testing.scaffold.plugin_files import driver_files, observer_files
from heron_testing.scaffold.plugin_names import PluginNames

__all__ = ["OBSERVER_FAMILY", "new", "new_plugin"]

OBSERVER_FAMILY = "hooks"
"""The family of observers, which have hooks in place of a contract."""


@click.command()
@click.argument("family")
@click.argument("name")
@click.option("--into", type=click.Path(path_type=Path), default=Path(), help="The folder for the plugin; else here.")
def new(family: str, name: str, into: Path) -> None:
    """Writes a new plugin into the folder FAMILY-NAME.

    FAMILY is a family of drivers, such as statemgr, or hooks for an observer. NAME is the name of the plugin in
    profiles and commands. The plugin installs and loads. The tests of a driver fail for each method to write; an
    observer logs every event.
    """
    folder = shlex.quote(str(new_plugin(family, name, into)))
    shows = "its test" if family == OBSERVER_FAMILY else "the methods that are still to be written"
    print(f"wrote {folder}; these commands install it and show {shows}:")
    print(f"    pip install -e {folder}")
    print(f"    python -m pytest {folder}")


def new_plugin(family: str, name: str, into: Path) -> Path:
    """Write the plugin FAMILY-NAME as a new folder in `into`, and return the new folder.

    `family` is a key of `heron.spi.families.FAMILIES` or ``hooks``; `into` exists. The plugin installs, loads, and
    passes ruff and mypy. The tests of a driver fail for each method that its author has to write. An observer logs
    every event, and its tests pass. The folder appears at once with all its files. A process that is killed before
    that leaves at most a hidden folder.

    Raises:
        PluginError: when the family has no scaffold, the name is not valid for a plugin, `into` is not a folder, the
            plugin's folder exists, or it cannot be written. Nothing has changed then.
    """
    families = (*FAMILIES, OBSERVER_FAMILY)
    if family not in families:
        msg = f"no scaffold for a plugin of family {family!r}{nearest(family, families)}; known: {known(families)}"
        raise PluginError(msg)
    names = PluginNames(family, name, "Observer" if family == OBSERVER_FAMILY else FAMILIES[family].__name__)
    target = into / names.folder
    _refuse_place(target)
    try:
        _put(_files(names), target)
    except OSError as error:
        msg = f"cannot write {target}: {error.strerror or error}; choose another folder with --into"
        raise PluginError(msg) from error
    return target


def _files(names: PluginNames) -> Mapping[PurePosixPath, str]:
    if names.family == OBSERVER_FAMILY:
        return observer_files(names)
    suite = load_object(f"heron_testing.contracts.{names.family}:{names.base}Contract", "contract suite")
    return driver_files(names, FAMILIES[names.family], cast("type[DriverContract]", suite))


def _refuse_place(target: Path) -> None:
    if not target.parent.is_dir():
        msg = f"{target.parent} is not a folder; create it, or choose another with --into"
        raise PluginError(msg)
    if target.exists() or target.is_symlink():
        msg = f"{target} exists; remove it, choose another name, or choose another folder with --into"
        raise PluginError(msg)


def _put(files: Mapping[PurePosixPath, str], target: Path) -> None:
    """Write into a hidden folder beside the target, then rename, so that no process sees an incomplete plugin."""
    unfinished = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        whole = unfinished / target.name  # mkdtemp ignores the umask; this inner folder follows it
        for path, text in files.items():
            place = whole / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8")
        os.rename(whole, target)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
