"""``heron list``: the topologies of a profile."""

from __future__ import annotations

import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from heron.driver_kit.redaction import redact_for_command
from heron_cli.client.environment import open_environment
from heron_cli.client.topology_list import Entry, roll
from heron_cli.commands.completion import complete_profile
from heron_cli.commands.overrides import parse_overrides
from heron_cli.launch.prepare import find_profile
from heron_cli.view.json_text import print_json

__all__ = ["list_topologies"]


@click.command("list")
@click.argument("profile", default="local", shell_complete=complete_profile)
@click.option("--role", help="Only those of this role.")
@click.option("--env", help="Only those of this environment.")
@click.option("--config-path", type=click.Path(path_type=Path), help="A folder of profiles, searched first.")
@click.option("--set", "settings", metavar="KEY=VALUE", multiple=True, help="Overrides one setting; repeatable.")
@click.option("--json", "as_json", is_flag=True, help="Prints JSON.")
def list_topologies(
    profile: str,
    role: str | None,
    env: str | None,
    config_path: Path | None,
    settings: tuple[str, ...],
    as_json: bool,
) -> None:
    """Lists the topologies of PROFILE (local unless given), and those that ended within the last 24 hours.

    What a run that is over has left behind is removed; if that was not to be expected a note says so.
    """
    environment = open_environment(find_profile(profile, config_path, parse_overrides(settings)))
    try:
        found = roll(environment)
    finally:
        environment.statemgr.close()
    for note in found.notes:
        click.echo(f"heron: note: {redact_for_command(note)}", err=True)
    wanted = (each for each in found.entries if role in (None, each.role) and env in (None, each.env))
    entries = [replace(each, errors=tuple(map(redact_for_command, each.errors))) for each in wanted]
    if as_json:
        print_json(entries)
    elif not entries:
        print(f"no topologies in profile {profile}")
    else:
        Console(width=None if sys.stdout.isatty() else 200).print(_table(entries))
        for each in entries:
            for error in each.errors:
                click.echo(f"{each.name}: {error}", err=True)


def _table(entries: list[Entry]) -> Table:
    table = Table(show_edge=False, pad_edge=False, box=None, header_style="bold")
    for heading in ("name", "role", "env", "state", "since", "containers", "tasks"):
        table.add_column(heading, no_wrap=True, justify="right" if heading in {"containers", "tasks"} else "left")
    for each in entries:
        counts = [str(number) if number else "" for number in (each.containers, each.tasks)]
        table.add_row(each.name, each.role, each.env, each.state, _spoken(each.since_s), *counts)
    return table


def _spoken(since_s: float | None) -> str:
    if since_s is None:
        return ""
    return datetime.fromtimestamp(since_s, UTC).isoformat(sep=" ", timespec="seconds")
