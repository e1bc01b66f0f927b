"""``heron plugins``: what is installed, where it is from, and whether it works."""

from __future__ import annotations

import dataclasses
import inspect
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import click
from rich.console import Console
from rich.table import Table

from heron.driver_kit.loading import contract_version
from heron.errors import PluginError, UsageError, known, nearest
from heron.spi.families import FAMILIES
from heron_cli.catalog.compat_catalog import COMPAT_FAMILY, compat_catalog
from heron_cli.catalog.drivers import DriverInfo, Drivers
from heron_cli.catalog.observer_catalog import OBSERVER_FAMILY, observer_catalog
from heron_cli.catalog.plugin_check import PluginCheck, ServerState, check_plugins
from heron_cli.command_group import CommandGroup
from heron_cli.commands.completion import complete_profile
from heron_cli.commands.overrides import parse_overrides
from heron_cli.launch.prepare import find_profile
from heron_cli.view.json_text import print_json

__all__ = ["plugins"]

_KINDS = (*FAMILIES, COMPAT_FAMILY, OBSERVER_FAMILY)
_CORE = "heron-core"
_EXIT_BROKEN = 2
_LONGEST_S = 60.0  # as the contract of Driver.check has it


class _PluginCommands(CommandGroup):
    path = "plugins."
    suggested: ClassVar = {"new": "heron-testing"}


@click.group(cls=_PluginCommands)
def plugins() -> None:
    """Shows what is installed."""


@plugins.command("list")
@click.argument("family", required=False)
@click.option("--json", "as_json", is_flag=True, help="Prints JSON.")
def list_plugins(family: str | None, as_json: bool) -> None:
    """Lists the installed drivers by family, served packages and observers; those that do not work with the reason."""
    found = _catalog(family)
    if as_json:
        print_json([_fields(each) for each in found])
        return
    if found:
        _print(_table(found, {}))
    if all(each.distribution == _CORE for each in found):
        print("no plugins are installed; `pip install heron-bundle-local` brings those of one machine")


@plugins.command("show")
@click.argument("family")
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Prints JSON.")
def show_plugin(family: str, name: str, as_json: bool) -> None:
    """Shows all that is known of one plugin. Observers are of the family `hooks`."""
    for each in _named(family, name):
        flags = getattr(sys.modules[FAMILIES[family].__module__], "CAPABILITIES", ()) if family in FAMILIES else ()
        wanted = contract_version(FAMILIES[family]) if family in FAMILIES else None
        if as_json:
            print_json({**_fields(each), "core_spi_version": wanted, "known_capabilities": sorted(flags)})
            continue
        table = Table(show_header=False, show_edge=False, pad_edge=False, box=None)
        for row in _facts(each, wanted, frozenset(flags)):
            table.add_row(*row)
        _print(table)


@plugins.command("check")
@click.argument("family", required=False)
@click.argument("name", required=False)
@click.option(
    "--profile", default="local", show_default=True, shell_complete=complete_profile, help="Whose servers are asked."
)
@click.option("--config-path", type=click.Path(path_type=Path), help="A folder of profiles, searched first.")
@click.option("--set", "settings", metavar="KEY=VALUE", multiple=True, help="Overrides one setting; repeatable.")
@click.option("--timeout", "timeout_s", type=float, default=10.0, show_default=True, metavar="SECONDS")
@click.option("--json", "as_json", is_flag=True, help="Prints JSON.")
@click.pass_context
def check_command(  # noqa: PLR0913, PLR0917 - one parameter for each option
    context: click.Context,
    family: str | None,
    name: str | None,
    profile: str,
    config_path: Path | None,
    settings: tuple[str, ...],
    timeout_s: float,
    as_json: bool,
) -> None:
    """Loads every plugin, and asks the server of each that the profile uses whether it answers.

    Exit codes: 0 all work, 2 something does not.
    """
    if not 0.1 <= timeout_s <= _LONGEST_S:
        msg = f"--timeout: {timeout_s:g} s is not within 0.1 to {_LONGEST_S:g} s"
        raise UsageError(msg)
    found = _named(family, name) if family and name else _catalog(family)
    chosen = find_profile(profile, config_path, parse_overrides(settings))
    checked = check_plugins(found, chosen, timeout_s)
    if as_json:
        print_json(
            [{**_fields(each.plugin), "server": each.server.value, "server_detail": each.detail} for each in checked]
        )
    else:
        _print(_table(found, {id(each.plugin): each for each in checked}))
    context.exit(0 if all(each.works for each in checked) else _EXIT_BROKEN)


def _catalog(family: str | None) -> tuple[DriverInfo, ...]:
    if family is not None and family not in _KINDS:
        msg = f"no family {family!r} of plugins{nearest(family, _KINDS)}; known: {known(_KINDS)}"
        raise PluginError(msg)
    drivers = Drivers().catalog(family) if family is None or family in FAMILIES else ()
    served = compat_catalog() if family in (None, COMPAT_FAMILY) else ()
    return (*drivers, *served, *(observer_catalog() if family in (None, OBSERVER_FAMILY) else ()))


def _named(family: str, name: str) -> tuple[DriverInfo, ...]:
    """All of that name: more than one only when they are in each other's way."""
    catalog = _catalog(family)
    found = tuple(each for each in catalog if each.name == name)
    if not found:
        names = {each.name for each in catalog}
        what = {OBSERVER_FAMILY: "observer", COMPAT_FAMILY: "compat plugin"}.get(family, f"{family} driver")
        msg = (
            f"no {what} {name!r} is installed{nearest(name, names)}; installed: {known(names)}; "
            f"to add it: `pip install heron-{'observer' if family == OBSERVER_FAMILY else family}-{name}`"
        )
        raise PluginError(msg)
    return found


def _fields(info: DriverInfo) -> dict[str, object]:
    return dataclasses.asdict(info)


def _facts(info: DriverInfo, wanted: int | None, flags: frozenset[str]) -> list[tuple[str, str]]:
    facts = [
        ("plugin", f"{info.family} {info.name}"),
        ("distribution", f"{info.distribution} {info.version}"),
        ("origin", f"{info.source}, {info.place}"),
        ("class", info.entry),
    ]
    if info.error:
        return [*facts, ("does not work", info.error)]
    if wanted is None:
        doing = "serves" if info.family == COMPAT_FAMILY else "follows"
        return [*facts, (doing, ", ".join(info.capabilities) or "nothing")]
    lacks = ", ".join(sorted(flags - set(info.capabilities)))
    spoken = ", ".join(info.capabilities) or "none"
    text = inspect.getdoc(Drivers().driver(info.family, info.name)) or ""
    return [
        *facts,
        ("contract", f"version {info.spi_version}, as this core's"),
        ("capabilities", f"{spoken}; lacks {lacks}" if lacks else spoken),
        ("what it is", text.partition("\n\n")[0].replace("\n", " ")),
    ]


def _table(found: Sequence[DriverInfo], checked: dict[int, PluginCheck]) -> Table:
    table = Table(show_edge=False, pad_edge=False, box=None, header_style="bold")
    for heading in ("family", "name", "distribution", "version", "contract", "origin"):
        table.add_column(heading, no_wrap=True)
    table.add_column("server" if checked else "capabilities")
    for each in found:
        contract = "" if each.spi_version is None else str(each.spi_version)
        last = f"does not work: {each.error}" if each.error else _last(each, checked.get(id(each)))
        table.add_row(each.family, each.name, each.distribution, each.version, contract, each.source, last)
    return table


def _last(info: DriverInfo, check: PluginCheck | None) -> str:
    if check is None:
        return ", ".join(info.capabilities)
    if check.server is ServerState.NONE:
        return "works; has no server"
    if check.server is ServerState.NOT_ASKED:
        return "loads; not used by the profile"
    return f"{check.server.value}: {check.detail}"


def _print(table: Table) -> None:
    Console(width=None if sys.stdout.isatty() else 200, highlight=False, markup=False, emoji=False).print(table)
