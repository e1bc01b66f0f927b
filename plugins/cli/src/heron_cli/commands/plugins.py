"""``heron plugins``: the installed plugins, where they come from, and whether they work."""

from __future__ import annotations

import dataclasses
import inspect
import sys
from collections.abc import Sequence
from typing import ClassVar

import click
from rich.table import Table

from heron.driver_kit.loading import contract_version
from heron.errors import PluginError, UsageError, known, nearest
from heron.spi.families import FAMILIES
from heron_cli.catalog.drivers import SHIPPED, DriverInfo, Drivers
from heron_cli.catalog.other_plugins import (
    COMPAT_FAMILY,
    KINDS,
    OBSERVER_FAMILY,
    compat_catalog,
    observer_catalog,
    unknown_groups,
)
from heron_cli.catalog.plugin_check import PluginCheck, ServerState, check_plugins
from heron_cli.command_group import CommandGroup
from heron_cli.commands.options import ChoiceOptions, choice_options, json_option, profile_option
from heron_cli.topologies.environment import find_profile
from heron_cli.view.console import open_console
from heron_cli.view.text import echo, print_json

__all__ = ["plugins"]

_CORE = "heron-core"
_EXIT_BROKEN = 2
_LONGEST_S = 60.0  # the longest that the contract of Driver.check allows


class _PluginCommands(CommandGroup):
    path = "plugins."
    suggested: ClassVar = {"new": "heron-testing"}


@click.group(cls=_PluginCommands)
def plugins() -> None:
    """Lists, checks and creates plugins."""


@plugins.command("list")
@click.argument("family", required=False)
@json_option
def list_plugins(family: str | None, as_json: bool) -> None:
    """Lists the installed plugins by family: drivers, compat plugins and observers; a broken plugin with the reason."""
    found = _catalog(family)
    if as_json:
        print_json([_fields(each) for each in found])
        return
    if found:
        _print(_table(found, {}))
        _warn(found)
    if all(each.distribution == _CORE for each in found):
        echo("no plugins are installed; `pip install heron-bundle-local` brings those for one machine")


@plugins.command("show")
@click.argument("family")
@click.argument("name")
@json_option
def show_plugin(family: str, name: str, as_json: bool) -> None:
    """Shows the properties of one plugin. The family of observers is `hooks`."""
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
@profile_option("The profile whose servers are asked.")
@choice_options()
@click.option(
    "--timeout",
    "timeout_s",
    type=float,
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="The longest wait for each server.",
)
@json_option
@click.pass_context
def check_command(
    context: click.Context,
    family: str | None,
    name: str | None,
    profile: str,
    options: ChoiceOptions,
    timeout_s: float,
    as_json: bool,
) -> None:
    """Loads every plugin, and asks the servers of the plugins that the profile uses.

    Exit codes: 0 all plugins work, 2 a plugin or server does not.
    """
    if not 0.1 <= timeout_s <= _LONGEST_S:
        msg = f"--timeout: {timeout_s:g} s is not within 0.1 to {_LONGEST_S:g} s"
        raise UsageError(msg)
    found = _named(family, name) if family and name else _catalog(family)
    chosen = find_profile(options.choose(profile))
    checked = check_plugins(found, chosen, timeout_s, options.without)
    if as_json:
        print_json(
            [{**_fields(each.plugin), "server": each.server.value, "server_detail": each.detail} for each in checked]
        )
    else:
        _print(_table(found, {id(each.plugin): each for each in checked}))
        _warn(found)
    context.exit(0 if all(each.works for each in checked) else _EXIT_BROKEN)


def _catalog(family: str | None) -> tuple[DriverInfo, ...]:
    if family is not None and family not in KINDS:
        msg = f"no family {family!r} of plugins{nearest(family, KINDS)}; known: {known(KINDS)}"
        raise PluginError(msg)
    drivers = Drivers().catalog(family) if family is None or family in FAMILIES else ()
    served = compat_catalog() if family in (None, COMPAT_FAMILY) else ()
    observers = observer_catalog() if family in (None, OBSERVER_FAMILY) else ()
    return (*drivers, *served, *observers, *(unknown_groups() if family is None else ()))


def _named(family: str, name: str) -> tuple[DriverInfo, ...]:
    """Return all plugins of that name; there are several only when they conflict."""
    catalog = _catalog(family)
    found = tuple(each for each in catalog if each.name == name)
    if not found:
        names = {each.name for each in catalog}
        what = {OBSERVER_FAMILY: "observer", COMPAT_FAMILY: "compat plugin"}.get(family, f"{family} driver")
        add = f"; to add it: `pip install heron-{family}-{name}`" if name in SHIPPED.get(family, ()) else ""
        msg = f"no {what} {name!r} is installed{nearest(name, names)}; installed: {known(names)}{add}"
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
        verb = "serves" if info.family == COMPAT_FAMILY else "follows"
        return [*facts, (verb, ", ".join(info.capabilities) or "nothing")]
    lacks = ", ".join(sorted(flags - set(info.capabilities)))
    flags_text = ", ".join(info.capabilities) or "none"
    text = inspect.getdoc(Drivers().driver(info.family, info.name)) or ""
    age = "deprecated" if info.warning else "as this core's"
    return [
        *facts,
        ("contract", f"version {info.spi_version}, {age}"),
        *((("warning", info.warning),) if info.warning else ()),
        ("capabilities", f"{flags_text}; lacks {lacks}" if lacks else flags_text),
        ("what it is", text.partition("\n\n")[0].replace("\n", " ")),
    ]


def _table(found: Sequence[DriverInfo], checked: dict[int, PluginCheck]) -> Table:
    table = Table(show_edge=False, pad_edge=False, box=None, header_style="bold")
    for heading in ("family", "name", "distribution", "version", "contract", "origin"):
        table.add_column(heading, no_wrap=True)
    table.add_column("server" if checked else "capabilities")
    for each in found:
        contract = "" if each.spi_version is None else str(each.spi_version)
        contract += " (deprecated)" if each.warning else ""
        last = f"does not work: {each.error}" if each.error else _last(each, checked.get(id(each)))
        table.add_row(each.family, each.name, each.distribution, each.version, contract, each.source, last)
    return table


def _last(info: DriverInfo, check: PluginCheck | None) -> str:
    if check is None:
        return ", ".join(info.capabilities)
    if check.server is ServerState.NONE:
        return check.detail or "works; has no server"
    if check.server is ServerState.NOT_ASKED:
        return check.detail or "loads; not used by the profile"
    return f"{check.server.value}: {check.detail}"


def _warn(found: Sequence[DriverInfo]) -> None:
    for each in found:
        if each.warning:
            echo(f"heron: warning: {each.warning}", err=True)


def _print(table: Table) -> None:
    open_console(highlight=False).print(table)
