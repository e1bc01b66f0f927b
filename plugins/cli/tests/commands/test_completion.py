"""Completion of the names of profiles and topologies in a shell."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete

from heron.spi.statemgr import NodeKind
from heron_cli.main import heron
from heron_cli.topologies.environment import Environment

OF_TOPOLOGIES = ("kill", "status", "metrics", "logs", "activate", "deactivate", "restart")


def offered(words: list[str], typed: str) -> list[str]:
    """Return the completions of the last, unfinished word."""
    made = ShellComplete(heron, {}, "heron", "_HERON_COMPLETE")
    return [each.value for each in made.get_completions(words, typed)]


@pytest.mark.parametrize("command", OF_TOPOLOGIES)
def test_topologies_of_the_profile_are_offered(environment: Environment, profiles: Path, command: str) -> None:
    """The names come from the profile that the command line names so far."""
    environment.statemgr.set(NodeKind.TOPOLOGY, "Words", b"x")
    assert offered([command, "--config-path", str(profiles), "--profile", "here"], "W") == ["Words"]
    assert offered([command, "--config-path", str(profiles), "--profile", "hare"], "W") == []


@pytest.mark.parametrize(
    "command",
    [
        "kill",
        "status",
        "metrics",
        "logs",
        "activate",
        "deactivate",
        "restart",
        "run",
        "plan",
        "plugins check",
        "packages list",
    ],
)
def test_profiles_are_offered_to_the_option(profiles: Path, command: str) -> None:
    """They include profiles of the folder in `--config-path`."""
    assert offered([*command.split(), "--config-path", str(profiles), "--profile"], "he") == ["here"]


@pytest.mark.parametrize("command", ["list", "doctor", "submit", "profiles show", "profiles check"])
def test_profiles_are_offered_where_one_is_the_argument(profiles: Path, command: str) -> None:
    """No option is needed before the argument."""
    assert offered([*command.split(), "--config-path", str(profiles)], "he") == ["here"]


def test_every_profile_and_every_name_of_a_topology_is_completed() -> None:
    """The test fails when a new command lacks completion."""
    forgotten = [
        f"{path} {parameter.name}"
        for path, command in commands(heron, "heron")
        for parameter in command.params
        if parameter.name in {"profile", "name"} and not path.startswith("heron plugins ")
        if parameter._custom_shell_complete is None
    ]
    assert forgotten == []


def commands(command: click.Command, path: str) -> list[tuple[str, click.Command]]:
    """Return the command and its subcommands."""
    if not isinstance(command, click.Group):
        return [(path, command)]
    context = click.Context(command)
    below = [(name, command.get_command(context, name)) for name in command.list_commands(context)]
    return [found for name, each in below if each is not None for found in commands(each, f"{path} {name}")]
