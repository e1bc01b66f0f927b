"""``heron list``: the topologies of a profile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import cast

import click

from heron.driver_kit.loading import load_object
from heron.driver_kit.redaction import redact_for_command
from heron.errors import UsageError
from heron_cli.commands.completion import complete_profile
from heron_cli.commands.options import ChoiceOptions, choice_options, json_option
from heron_cli.profile_client import ProfileClient
from heron_cli.topologies.runs.topology_list import TopologyEntry, list_topologies
from heron_cli.view.text import echo, print_json

__all__ = ["list_command"]

_PRINT = "heron_cli.view.topology_table:print_topologies"
"""Loaded by name because tables, which take 60 ms to import, are for people alone."""


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
    with ProfileClient(options.choose(profile)) as client:
        found = list_topologies(client.environment())
    for note in found.notes:
        echo(f"heron: note: {redact_for_command(note)}", err=True)
    wanted = (each for each in found.entries if role in (None, each.role) and env in (None, each.env))
    entries = [replace(each, errors=tuple(map(redact_for_command, each.errors))) for each in wanted]
    if as_json:
        print_json(entries)
    elif not entries:
        echo(f"no topologies in profile {profile}")
    else:
        cast("Callable[[Sequence[TopologyEntry]], None]", load_object(_PRINT))(entries)
        for each in entries:
            for error in each.errors:
                echo(f"{each.name}: {error}", err=True)
