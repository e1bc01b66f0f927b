"""``heron doctor``: looks for faults, and prints the remedy for each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import click
from rich.table import Table
from rich.text import Text

from heron.driver_kit.redaction import redact_for_command
from heron.errors import HeronError
from heron_cli.commands.completion import complete_profile
from heron_cli.commands.options import ChoiceOptions, choice_options, json_option
from heron_cli.topologies.diagnostics import Diagnosis, diagnose_machine, diagnose_profile
from heron_cli.topologies.environment import ProfileChoice, find_profile, open_environment
from heron_cli.view.console import open_console
from heron_cli.view.text import print_json

__all__ = ["doctor"]

_EXIT_ERRORS = 1


@click.command(epilog="Exit codes: 0 no fault would stop a topology, 1 a fault would, 2 wrong usage.")
@click.argument("profile", default="local", shell_complete=complete_profile)
@choice_options()
@json_option
@click.pass_context
def doctor(
    context: click.Context,
    profile: str,
    options: ChoiceOptions,
    as_json: bool,
) -> None:
    """Checks this machine and PROFILE (default: local), and lists what dead topologies left; changes nothing."""
    found = _diagnoses(options.choose(profile))
    diagnoses = tuple(replace(each, text=redact_for_command(each.text)) for each in found)
    if as_json:
        print_json(diagnoses)
    else:
        open_console().print(_table(diagnoses))
    context.exit(_EXIT_ERRORS if any(each.level == "error" for each in diagnoses) else 0)


def _diagnoses(choice: ProfileChoice) -> Iterator[Diagnosis]:
    yield from diagnose_machine()
    try:
        profile = find_profile(choice)
        environment = open_environment(profile)
    except HeronError as error:
        yield Diagnosis("profile", "error", str(error), "correct the profile; see `heron plugins list`")
        return
    yield Diagnosis("profile", "ok", f"{choice.name}: {profile.source}")
    try:
        yield from diagnose_profile(environment)
    finally:
        environment.close()


def _table(diagnoses: tuple[Diagnosis, ...]) -> Table:
    table = Table(show_edge=False, pad_edge=False, box=None, header_style="bold")
    for heading in ("check", "", "found", "what to do"):
        table.add_column(heading, overflow="fold")
    colours = {"ok": "green", "warning": "yellow", "error": "red"}
    for each in diagnoses:
        table.add_row(each.check, Text(each.level, colours[each.level]), Text(each.text), Text(each.remedy))
    return table
