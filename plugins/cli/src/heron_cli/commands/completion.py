"""``heron completion``, and what the shell is offered: names of profiles and topologies."""

from __future__ import annotations

from pathlib import Path

import click
from click.shell_completion import CompletionItem, get_completion_class

from heron.driver_kit.large_values import open_statemgr
from heron.errors import HeronError
from heron_cli.client.discovery import topologies
from heron_cli.commands.overrides import parse_overrides
from heron_cli.launch.prepare import find_profile
from heron_cli.profiles import profile_names

__all__ = ["complete_file", "complete_profile", "complete_topology", "completion"]

_SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Prints the completion script of a shell: `source <(heron completion bash)` in ~/.bashrc, zsh likewise;
    `heron completion fish > ~/.config/fish/completions/heron.fish`.
    """
    made = get_completion_class(shell)
    if made is None:
        context.fail(f"no completion for {shell}")
    print(made(context.find_root().command, {}, "heron", "_HERON_COMPLETE").source())


def complete_profile(context: click.Context, _parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Names of profiles."""
    try:
        names = profile_names(_config_path(context))
    except HeronError:
        return []
    return [CompletionItem(name) for name in names if name.startswith(typed)]


def complete_topology(context: click.Context, _parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Names of the topologies of the profile that the command line has so far."""
    try:
        overrides = parse_overrides(context.params.get("settings") or ())
        profile = find_profile(context.params.get("profile") or "local", _config_path(context), overrides)
        statemgr = open_statemgr(profile.statemgr)
        try:
            names = topologies(statemgr)
        finally:
            statemgr.close()
    except HeronError:
        return []  # a shell that waits for a word is no place for an error
    return [CompletionItem(name) for name in names if name.startswith(typed)]


def complete_file(_context: click.Context, _parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Files, left to the shell."""
    return [CompletionItem(typed, type="file")]


def _config_path(context: click.Context) -> Path | None:
    path = context.params.get("config_path")
    return path if isinstance(path, Path) else None
