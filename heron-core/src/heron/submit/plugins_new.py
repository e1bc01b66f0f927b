"""``heron plugins new``: writes the first version of a plugin."""

from __future__ import annotations

import importlib.util
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import cast

import click

from heron.errors import PluginError
from heron.kernel.loading import load_object

__all__ = ["new"]

_FOR_TESTS = ("pytest", "hypothesis")


@click.command()
@click.argument("family")
@click.argument("name")
@click.option("--into", type=click.Path(path_type=Path), default=Path(), help="Where to put it; else here.")
def new(family: str, name: str, into: Path) -> None:
    """Writes a plugin that installs, loads and fails the contract cases to be kept: FAMILY-NAME, a new folder.

    FAMILY is a kind of driver, such as statemgr; NAME is what profiles will call it.
    """
    _require_testing()
    write = cast("Callable[[str, str, Path], Path]", load_object("heron.testing.scaffold.new_plugin:new_plugin"))
    folder = shlex.quote(str(write(family, name, into)))
    print(f"wrote {folder}; these show what is still to be written:")
    print(f"    pip install -e {folder}")
    print(f"    python -m pytest {folder}")


def _require_testing() -> None:
    missing = [name for name in _FOR_TESTS if importlib.util.find_spec(name) is None]
    if missing:
        needed = " and ".join(missing)
        msg = f"a new plugin begins with its tests, which need {needed}: `pip install 'heron-core[testing]'`"
        raise PluginError(msg)
