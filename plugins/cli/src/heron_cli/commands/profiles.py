"""``heron profiles``: lists profiles, and shows or checks the settings of a profile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import click
import msgspec

from heron.errors import UsageError
from heron.spi.driver import DriverRef
from heron_cli.catalog.drivers import Drivers
from heron_cli.catalog.other_plugins import check_without
from heron_cli.catalog.plugin_check import ask_server
from heron_cli.catalog.profile_check import ProfileCheck, check_profile, open_once
from heron_cli.commands.completion import complete_profile
from heron_cli.commands.options import config_path_option, json_option, set_option, without_option
from heron_cli.profiles import ListedSetting, list_settings, profile_entries, read_profile
from heron_cli.profiles.overrides import parse_overrides
from heron_cli.view.text import columns, counted, echo, print_json

__all__ = ["profiles"]

_EXIT_REFUSED = 2
_ANSWER_S = 10.0
_TRIAL_S = 45.0  # a scheduler may have to start something for it


@click.group()
def profiles() -> None:
    """Lists, shows and checks profiles, which define where and how topologies run."""


@profiles.command("list")
@config_path_option
@json_option
def list_profiles(config_path: Path | None, as_json: bool) -> None:
    """Lists the profiles, each with its file."""
    found = profile_entries(config_path)
    if as_json:
        print_json(found)
        return
    rows = [
        (each.name, each.about or "", "shipped" if each.shipped else str(each.source), each.error) for each in found
    ]
    for line in columns([row[:3] for row in rows]):
        echo(line)
    for name, _, _, error in rows:
        if error:
            echo(f"{name} cannot be read: {error}")


@profiles.command()
@click.argument("name", shell_complete=complete_profile)
@click.option("--origin", is_flag=True, help="Shows where each value comes from.")
@config_path_option
@set_option
@json_option
def show(name: str, origin: bool, config_path: Path | None, settings: tuple[str, ...], as_json: bool) -> None:
    """Shows every value of a profile, defaults included; references are not resolved, and secrets stay hidden."""
    resolve, overrides = Drivers().resolve, _overrides(settings)
    listed = list_settings(name, resolve, config_path=config_path, overrides=overrides)
    if problems := read_profile(name, resolve, config_path=config_path, overrides=overrides).problems:
        echo(
            f"heron: note: {name} has {counted(len(problems), 'problem')}; see `heron profiles check {name}`", err=True
        )
    if as_json:
        values = [
            {"path": each.path, "value": each.value, "layer": each.layer, "origin": each.origin}
            for each in listed.settings
        ]
        print_json({"profile": name, "files": [str(each) for each in listed.files], "settings": values})
        return
    rows = [(each.path, _format_value(each), *((each.origin,) if origin else ())) for each in listed.settings]
    for line in columns(rows):
        echo(line)


@profiles.command()
@click.argument("name", shell_complete=complete_profile)
@config_path_option
@set_option
@without_option
@click.option("--offline", is_flag=True, help="Asks no server; only opens the drivers.")
@json_option
@click.pass_context
def check(
    context: click.Context,
    name: str,
    config_path: Path | None,
    settings: tuple[str, ...],
    without: tuple[str, ...],
    offline: bool,
    as_json: bool,
) -> None:
    """Lists every problem of a profile. Exit codes: 0 no problem, 2 problems.

    It also asks the servers that the profile names, each for at most ten seconds; a scheduler on a cluster runs a task
    there. It does not open metrics sinks, because a sink that listens on a port would disturb running topologies.
    """
    check_without(without)
    found = check_profile(name, config_path, _overrides(settings), open_once if offline else _ask, without=without)
    if as_json:
        problems = [
            {"path": each.path, "origin": each.origin, "text": each.text, "install": each.install}
            for each in found.problems
        ]
        print_json(
            {
                "profile": name,
                "ok": found.ok,
                "drivers": found.drivers,
                "problems": problems,
                "install": found.install,
            }
        )
    else:
        _print_check(found)
    context.exit(0 if found.ok else _EXIT_REFUSED)


def _ask(ref: DriverRef, others: Sequence[DriverRef]) -> str:
    return ask_server(ref, _TRIAL_S if ref.family == "scheduler" else _ANSWER_S, others)


def _overrides(settings: tuple[str, ...]) -> Mapping[str, str]:
    overrides = parse_overrides(settings)
    for key in overrides.topology:
        msg = f"--set {key}: is a setting of a topology, not of a profile; give it to `heron run`"
        raise UsageError(msg)
    return overrides.profile


def _print_check(found: ProfileCheck) -> None:
    if found.ok:
        echo(f"{found.name}: no problems")
        for line in columns([(f"  {each.family}", each.name, each.answer) for each in found.drivers]):
            echo(line)
        return
    echo(f"{found.name}: {counted(len(found.problems), 'problem')}")
    for each in found.problems:
        echo(f"  - {each.text}")
    if found.install:
        echo(f"to add what is missing: pip install {' '.join(found.install)}")


def _format_value(setting: ListedSetting) -> str:
    if isinstance(setting.value, str):
        return setting.value or '""'
    return msgspec.json.encode(setting.value).decode()
