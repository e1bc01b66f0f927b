"""Groups of commands that import a command when it is called, and that other distributions can extend."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import click

from heron.driver_kit.loading import load_object
from heron.errors import PluginError
from heron_cli.command_entries import command_entries

__all__ = ["CommandGroup"]


class CommandGroup(click.Group):
    """A group whose commands are imported when they are called.

    `entries` maps a command to ``module:Name``; `suggested` maps a command of another distribution to the name of
    that distribution.
    """

    entries: ClassVar[Mapping[str, str]] = {}
    suggested: ClassVar[Mapping[str, str]] = {}
    path: ClassVar[str] = ""
    """The group's own path with a dot at its end; empty for `heron` itself."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the own commands in the order of `entries`, then those of other distributions."""
        own = [*self.entries, *(name for name in super().list_commands(ctx) if name not in self.entries)]
        return [*own, *sorted(name for name in self._installed() if name not in own)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return the command; an error names the distribution to install when it is known."""
        if (own := super().get_command(ctx, cmd_name)) is not None:
            return own
        entry = self.entries.get(cmd_name) or self._installed().get(cmd_name)
        if entry is None:
            if cmd_name in self.suggested:
                msg = f"{ctx.command_path} {cmd_name} is not installed: `pip install {self.suggested[cmd_name]}`"
                raise PluginError(msg)
            return None
        found = load_object(entry, f"command {cmd_name!r}")
        if not isinstance(found, click.Command):
            msg = f"command {cmd_name!r} ({entry}) is not a click command; upgrade the distribution that brings it"
            raise PluginError(msg)
        return found

    def _installed(self) -> dict[str, str]:
        own = {name: value for name, value in command_entries().items() if name.startswith(self.path)}
        names = {name.removeprefix(self.path): value for name, value in own.items()}
        return {name: value for name, value in names.items() if "." not in name}
