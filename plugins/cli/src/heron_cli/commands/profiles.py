"""``heron profiles``: which profiles there are, what one says and who said it, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
import msgspec

from heron.errors import UsageError
from heron.spi.driver import DriverRef
from heron_cli.catalog.drivers import Drivers
from heron_cli.catalog.profile_check import ProfileCheck, check_profile
from heron_cli.catalog.server_check import ask_server
from heron_cli.commands.completion import complete_profile
from heron_cli.commands.overrides import parse_overrides
from heron_cli.profiles import ListedSetting, list_settings, profile_entries, read_profile
from heron_cli.view.json_text import print_json

__all__ = ["profiles"]

_EXIT_REFUSED = 2
_ANSWER_S = 10.0
_TRIAL_S = 45.0  # a scheduler may have to start something for it

_config_path = click.option(
    "--config-path", type=click.Path(path_type=Path), help="A folder of profiles, searched first."
)
_settings = click.option(
    "--set", "settings", metavar="KEY=VALUE", multiple=True, help="Overrides one setting; repeatable."
)
_as_json = click.option("--json", "as_json", is_flag=True, help="Prints JSON.")


@click.group()
def profiles() -> None:
    """Shows and checks profiles: where and how topologies run."""


@profiles.command("list")
@_config_path
@_as_json
def list_profiles(config_path: Path | None, as_json: bool) -> None:
    """Lists the profiles, with the file that serves each."""
    found = profile_entries(config_path)
    if as_json:
        print_json(found)
        return
    rows = [
        (each.name, each.about or "", "shipped" if each.shipped else str(each.source), each.error) for each in found
    ]
    for line in _columns([row[:3] for row in rows]):
        print(line)
    for name, _, _, error in rows:
        if error:
            print(f"{name} does not read: {error}")


@profiles.command()
@click.argument("name", shell_complete=complete_profile)
@click.option("--origin", is_flag=True, help="Shows where each value comes from.")
@_config_path
@_settings
@_as_json
def show(name: str, origin: bool, config_path: Path | None, settings: tuple[str, ...], as_json: bool) -> None:
    """Shows every value of a profile, defaults included; references and secrets stay what they are."""
    resolve, overrides = Drivers().resolve, _overrides(settings)
    listed = list_settings(name, resolve, config_path=config_path, overrides=overrides)
    if problems := read_profile(name, resolve, config_path=config_path, overrides=overrides).problems:
        count = f"{len(problems)} things are" if len(problems) > 1 else "one thing is"
        click.echo(f"heron: note: {count} wrong with it; see `heron profiles check {name}`", err=True)
    if as_json:
        values = [
            {"path": each.path, "value": each.value, "layer": each.layer, "origin": each.origin}
            for each in listed.settings
        ]
        print_json({"profile": name, "files": [str(each) for each in listed.files], "settings": values})
        return
    rows = [(each.path, _spoken(each), *((each.origin,) if origin else ())) for each in listed.settings]
    for line in _columns(rows):
        print(line)


@profiles.command()
@click.argument("name", shell_complete=complete_profile)
@_config_path
@_settings
@click.option("--offline", is_flag=True, help="Asks no server.")
@_as_json
@click.pass_context
def check(
    context: click.Context,
    name: str,
    config_path: Path | None,
    settings: tuple[str, ...],
    offline: bool,
    as_json: bool,
) -> None:
    """Says everything that is wrong with a profile; exit code 0 when nothing is, else 2.

    Asks the servers that it names, too, each for at most ten seconds; a scheduler on a cluster runs a task there.
    """
    overrides = _overrides(settings)
    if offline:
        found = check_profile(name, config_path, overrides)
    else:
        found = check_profile(name, config_path, overrides, _ask, _ask)
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


def _overrides(settings: tuple[str, ...]) -> dict[str, str]:
    overrides = parse_overrides(settings)
    for key in overrides.topology:
        msg = f"--set {key}: is a setting of a topology, not of a profile; give it to `heron run`"
        raise UsageError(msg)
    return overrides.profile


def _print_check(found: ProfileCheck) -> None:
    if found.ok:
        print(f"{found.name}: nothing is wrong")
        for line in _columns([(f"  {each.family}", each.name, each.answer) for each in found.drivers]):
            print(line)
        return
    count = len(found.problems)
    print(f"{found.name}: {count} problem{'s' if count > 1 else ''}")
    for each in found.problems:
        print(f"  - {each.text}")
    if found.install:
        print(f"to add what is missing: pip install {' '.join(found.install)}")


def _spoken(setting: ListedSetting) -> str:
    if isinstance(setting.value, str):
        return setting.value or '""'
    return msgspec.json.encode(setting.value).decode()


def _columns(rows: list[tuple[str, ...]]) -> list[str]:
    """The rows as lines; every column but the last as wide as its widest text."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
