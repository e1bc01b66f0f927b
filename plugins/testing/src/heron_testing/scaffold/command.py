"""``heron plugins new``: writes the first version of a plugin."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from heron_testing.scaffold.new_plugin import new_plugin

__all__ = ["new"]


@click.command()
@click.argument("family")
@click.argument("name")
@click.option("--into", type=click.Path(path_type=Path), default=Path(), help="Where to put it; else here.")
def new(family: str, name: str, into: Path) -> None:
    """Writes a plugin that installs, loads and fails the contract cases to be kept: FAMILY-NAME, a new folder.

    FAMILY is a kind of driver, such as statemgr; NAME is what profiles will call it.
    """
    folder = shlex.quote(str(new_plugin(family, name, into)))
    print(f"wrote {folder}; these show what is still to be written:")
    print(f"    pip install -e {folder}")
    print(f"    python -m pytest {folder}")
