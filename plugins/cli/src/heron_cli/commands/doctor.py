"""``heron doctor``: looks for what can be wrong, and says what to do about it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from heron.driver_kit.redaction import redact_for_command
from heron.errors import HeronError
from heron_cli.client.diagnostics import Finding, check_machine, check_profile
from heron_cli.client.environment import open_environment
from heron_cli.commands.completion import complete_profile
from heron_cli.commands.overrides import Overrides, parse_overrides
from heron_cli.launch.prepare import find_profile
from heron_cli.view.json_text import print_json

__all__ = ["doctor"]

_EXIT_ERRORS = 1


@click.command(epilog="Exit codes: 0 nothing that would stop a topology, 1 something does, 2 asked wrongly.")
@click.argument("profile", default="local", shell_complete=complete_profile)
@click.option("--config-path", type=click.Path(path_type=Path), help="A folder of profiles, searched first.")
@click.option("--set", "settings", metavar="KEY=VALUE", multiple=True, help="Overrides one setting; repeatable.")
@click.option("--json", "as_json", is_flag=True, help="Prints JSON.")
@click.pass_context
def doctor(
    context: click.Context, profile: str, config_path: Path | None, settings: tuple[str, ...], as_json: bool
) -> None:
    """Checks this machine and PROFILE (local unless given), and names what dead topologies left; changes nothing."""
    found = _findings(profile, config_path, parse_overrides(settings))
    findings = tuple(replace(each, text=redact_for_command(each.text)) for each in found)
    if as_json:
        print_json(findings)
    else:
        Console(width=None if sys.stdout.isatty() else 200).print(_table(findings))
    context.exit(_EXIT_ERRORS if any(each.level == "error" for each in findings) else 0)


def _findings(name: str, config_path: Path | None, overrides: Overrides) -> Iterator[Finding]:
    yield from check_machine()
    try:
        profile = find_profile(name, config_path, overrides)
        environment = open_environment(profile)
    except HeronError as error:
        yield Finding("profile", "error", str(error), "correct the profile; see `heron plugins list`")
        return
    yield Finding("profile", "ok", f"{name}: {profile.source}")
    with closing(environment.statemgr):
        yield from check_profile(profile, environment)


def _table(findings: tuple[Finding, ...]) -> Table:
    table = Table(show_edge=False, pad_edge=False, box=None, header_style="bold")
    for heading in ("check", "", "found", "what to do"):
        table.add_column(heading, overflow="fold")
    colours = {"ok": "green", "warning": "yellow", "error": "red"}
    for each in findings:
        table.add_row(each.check, Text(each.level, colours[each.level]), Text(each.text), Text(each.remedy))
    return table
