"""The commands of other distributions: entry points in the group ``heron.command``.

The name of an entry point is the path of the command with dots: ``tracker`` for ``heron tracker``, ``plugins.new`` for
``heron plugins new``.
"""

from __future__ import annotations

from heron_cli.entry_points import installed_points

__all__ = ["command_entries", "has_command"]

_GROUP = "heron.command"


def command_entries() -> dict[str, str]:
    """Return ``module:Name`` of each command that is installed, by its path."""
    return {each.name: each.value for each in installed_points().select(group=_GROUP)}


def has_command(path: str) -> bool:
    """Return whether a distribution with that command is installed."""
    return path in command_entries()
