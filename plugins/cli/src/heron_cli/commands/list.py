"""``heron list``: the topologies of a profile."""

from __future__ import annotations

from dataclasses import replace

import click
from rich.table import Table

from heron.driver_kit.redaction import redact_for_command
from heron.errors import UsageError
from heron_cli.client.client import Client
from heron_cli.commands.completion import complete_profile
from heron_cli.commands.options import ChoiceOptions, choice_options, json_option
from heron_cli.topologies.runs.topology_list import TopologyEntry
from heron_cli.view.console import open_console
from heron_cli.view.text import echo, format_time, print_json

__all__ = ["list_command"]


@click.command("list")
@click.argument("profile", required=False, shell_complete=complete_profile)
@click.option(
    "--profile", "named", metavar="PROFILE", help="The same as the argument.", shell_complete=complete_profile
)
@click.option("--role", help="Shows only topologies of this role.")
@click.option("--env", help="Shows only topologies of this environment.")
@choice_options()
@json_option
def list_command(
    profile: str | None,
    named: str | None,
    role: str | None,
    env: str | None,
    options: ChoiceOptions,
    as_json: bool,
) -> None:
    """Lists the topologies of PROFILE (default: local), and those that ended within the last 24 hours.

    It also removes what ended runs have left behind, and notes each run that had not ended in order.
    """
    if profile and named and profile != named:
        msg = f"two profiles are given, {profile!r} and --profile {named!r}; give one of them"
        raise UsageError(msg)
    profile = profile or named or "local"
    with Client(options.choose(profile)) as client:
        found = client.list()
    for note in found.notes:
        echo(f"heron: note: {redact_for_command(note)}", err=True)
    wanted = (each for each in found.entries if role in (None, each.role) and env in (None, each.env))
    entries = [replace(each, errors=tuple(map(redact_for_command, each.errors))) for each in wanted]
    if as_json:
        print_json(entries)
    elif not entries:
        echo(f"no topologies in profile {profile}")
    else:
        open_console().print(_table(entries))
        for each in entries:
            for error in each.errors:
                echo(f"{each.name}: {error}", err=True)


def _table(entries: list[TopologyEntry]) -> Table:
    table = Table(show_edge=False, pad_edge=False, box=None, header_style="bold")
    for heading in ("name", "role", "env", "state", "since", "containers", "tasks"):
        table.add_column(heading, no_wrap=True, justify="right" if heading in {"containers", "tasks"} else "left")
    for each in entries:
        counts = [str(number) if number else "" for number in (each.containers, each.tasks)]
        table.add_row(each.name, each.role, each.env, each.state, format_time(each.since_s), *counts)
    return table
