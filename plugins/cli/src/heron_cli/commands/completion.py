"""``heron completion``, and the names of profiles and topologies that a shell offers."""

from __future__ import annotations

from pathlib import Path

import click
from click.shell_completion import CompletionItem, get_completion_class

from heron.errors import HeronError
from heron_cli.profile_client import ProfileClient
from heron_cli.profiles import profile_names
from heron_cli.profiles.overrides import parse_overrides
from heron_cli.topologies.environment import ProfileChoice
from heron_cli.view.text import echo

__all__ = ["complete_file", "complete_profile", "complete_topology", "completion"]

_SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Prints the completion script of a shell.

    For bash and zsh, put `source <(heron completion bash)` into ~/.bashrc or ~/.zshrc. For fish, use
    `heron completion fish > ~/.config/fish/completions/heron.fish`.
    """
    made = get_completion_class(shell)
    if made is None:
        context.fail(f"no completion for {shell}")
    echo(made(context.find_root().command, {}, "heron", "_HERON_COMPLETE").source())


def complete_profile(context: click.Context, _parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Return the names of profiles."""
    try:
        names = profile_names(_config_path(context))
    except HeronError:
        return []
    return [CompletionItem(name) for name in names if name.startswith(typed)]


def complete_topology(context: click.Context, _parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Return the names of the topologies of the profile that the command line names so far."""
    try:
        overrides = parse_overrides(context.params.get("settings") or ())
        choice = ProfileChoice(context.params.get("profile") or "local", _config_path(context), overrides)
        with ProfileClient(choice, read_only=True) as client:
            names = client.names()
    except HeronError:
        return []  # a shell that completes a word cannot show an error
    return [CompletionItem(name) for name in names if name.startswith(typed)]


def complete_file(_context: click.Context, _parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Leave the names of files to the shell."""
    return [CompletionItem(typed, type="file")]


def _config_path(context: click.Context) -> Path | None:
    path = context.params.get("config_path")
    return path if isinstance(path, Path) else None
