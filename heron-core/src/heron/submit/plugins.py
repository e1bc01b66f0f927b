"""``heron plugins``: which drivers are installed."""

from __future__ import annotations

import dataclasses
import sys

import click
import msgspec
from rich.console import Console
from rich.table import Table

from heron.kernel.drivers import DriverInfo, catalog
from heron.submit.plugins_new import new

__all__ = ["plugins"]


@click.group()
def plugins() -> None:
    """Shows what is installed."""


plugins.add_command(new)


@plugins.command("list")
@click.option("--json", "as_json", is_flag=True, help="Prints JSON.")
def list_plugins(as_json: bool) -> None:
    """Lists the installed drivers by family, those that do not work with the reason."""
    found = catalog()
    if as_json:
        data = msgspec.json.encode([dataclasses.asdict(each) for each in found])
        print(msgspec.json.format(data, indent=2).decode())
        return
    if not found:
        print("no drivers are installed; `pip install heron-bundle-local` brings those of one machine")
        return
    Console(width=None if sys.stdout.isatty() else 200).print(_table(found))


def _table(found: tuple[DriverInfo, ...]) -> Table:
    table = Table(show_edge=False, pad_edge=False, box=None, header_style="bold")
    for heading in ("family", "driver", "distribution", "version", "contract", "capabilities"):
        table.add_column(heading, no_wrap=heading != "capabilities")
    for each in found:
        last = f"does not work: {each.error}" if each.error else ", ".join(each.capabilities)
        contract = "" if each.spi_version is None else str(each.spi_version)
        table.add_row(each.family, each.name, each.distribution, each.version, contract, last)
    return table
