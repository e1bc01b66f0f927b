"""The `heron` command. Each command is in its own file in `heron_cli.commands`, imported when it is called."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, cast

import click

from heron.driver_kit.loading import load_object
from heron.driver_kit.log import redact_warnings
from heron.driver_kit.redaction import redact_for_command
from heron.errors import HeronError, StateUnavailableError, TopologyFailedError, UnreachableError
from heron_cli.command_group import CommandGroup
from heron_cli.view.text import echo

__all__ = ["heron", "main"]

_COMMANDS = {
    "run": "heron_cli.commands.run:run",
    "plan": "heron_cli.commands.plan:plan",
    "submit": "heron_cli.commands.submit:submit",
    "list": "heron_cli.commands.list:list_command",
    "kill": "heron_cli.commands.kill:kill",
    "doctor": "heron_cli.commands.doctor:doctor",
    "status": "heron_cli.commands.status:status",
    "activate": "heron_cli.commands.activate:activate",
    "deactivate": "heron_cli.commands.activate:deactivate",
    "restart": "heron_cli.commands.restart:restart",
    "update": "heron_cli.commands.update:update",
    "keys": "heron_cli.commands.keys:keys",
    "checkpoints": "heron_cli.commands.checkpoints:checkpoints",
    "logs": "heron_cli.commands.logs:logs",
    "dead-letters": "heron_cli.commands.dead_letters:dead_letters",
    "metrics": "heron_cli.commands.metrics:metrics",
    "stack": "heron_cli.commands.stack:stack",
    "profile": "heron_cli.commands.profile:profile",
    "memory": "heron_cli.commands.memory:memory",
    "inspect": "heron_cli.commands.inspect:inspect",
    "trace": "heron_cli.commands.trace:trace",
    "plugins": "heron_cli.commands.plugins:plugins",
    "profiles": "heron_cli.commands.profiles:profiles",
    "packages": "heron_cli.commands.packages:packages",
    "hosts": "heron_cli.commands.hosts:hosts",
    "completion": "heron_cli.commands.completion:completion",
}

_AddPluginPath = Callable[[Sequence[Path]], None]

_EXIT_FAILED = 1
_EXIT_REFUSED = 2
_EXIT_INTERRUPTED = 130


class _Commands(CommandGroup):
    """Prints an error as one line, and turns it into an exit code."""

    entries = _COMMANDS
    suggested: ClassVar[Mapping[str, str]] = {
        "tracker": "heron-service-tracker",
        "ui": "heron-service-ui",
    }

    def invoke(self, ctx: click.Context) -> object:
        redact_warnings()
        try:
            return super().invoke(ctx)
        except (StateUnavailableError, TopologyFailedError, UnreachableError) as error:
            code, text = _EXIT_FAILED, str(error)
        except HeronError as error:  # raised before anything was started
            code, text = _EXIT_REFUSED, str(error)
        except KeyboardInterrupt:
            code, text = _EXIT_INTERRUPTED, "interrupted; nothing was started"
        echo(f"heron: error: {redact_for_command(text)}", err=True)
        return ctx.exit(code)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="heron-core", message="%(package)s %(version)s")
@click.option(
    "--plugin-path",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="DIR",
    help="Adds plugins without an installation: a plugin project, or a folder of distributions; repeatable.",
)
def heron(plugin_path: tuple[Path, ...]) -> None:
    """Runs topologies: spouts and bolts written in Python, one per process, exact and fast."""
    if plugin_path:
        # Loaded by name because other commands start faster without it.
        add = cast("_AddPluginPath", load_object("heron_cli.catalog.plugin_path:add_plugin_path"))
        add(plugin_path)


def main() -> None:
    """The entry point of the `heron` script."""
    sys.exit(heron(prog_name="heron"))
