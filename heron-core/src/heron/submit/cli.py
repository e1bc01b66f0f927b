"""The `heron` command. Each command is in a file of its own, imported when it is called."""

from __future__ import annotations

import sys
from typing import cast

import click

from heron.errors import HeronError, StateUnavailableError, TopologyFailedError, UnreachableError
from heron.kernel.loading import load_object
from heron.kernel.log import hide_in_warnings
from heron.kernel.secrets import spoken

__all__ = ["heron", "main"]

_COMMANDS = {
    "run": "heron.submit.run:run",
    "plan": "heron.submit.plan:plan",
    "submit": "heron.submit.submit:submit",
    "list": "heron.submit.list:list_topologies",
    "kill": "heron.submit.kill:kill",
    "doctor": "heron.submit.doctor:doctor",
    "status": "heron.submit.status:status",
    "activate": "heron.submit.activate:activate",
    "deactivate": "heron.submit.activate:deactivate",
    "restart": "heron.submit.restart:restart",
    "logs": "heron.submit.logs:logs",
    "metrics": "heron.submit.metrics:metrics",
    "plugins": "heron.submit.plugins:plugins",
    "profiles": "heron.submit.profiles:profiles",
    "packages": "heron.submit.packages:packages",
    "completion": "heron.submit.completion:completion",
}

_EXIT_FAILED = 1
_EXIT_REFUSED = 2
_EXIT_INTERRUPTED = 130


class _Commands(click.Group):
    """Imports a command when it is wanted, and turns errors into one line and an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = _COMMANDS.get(cmd_name)
        return cast("click.Command", load_object(entry)) if entry else None

    def invoke(self, ctx: click.Context) -> object:
        hide_in_warnings()
        try:
            return super().invoke(ctx)
        except (StateUnavailableError, TopologyFailedError, UnreachableError) as error:
            code, text = _EXIT_FAILED, str(error)
        except HeronError as error:  # before anything was started, so nothing is changed
            code, text = _EXIT_REFUSED, str(error)
        except KeyboardInterrupt:
            code, text = _EXIT_INTERRUPTED, "interrupted; nothing was started"
        click.echo(f"heron: error: {spoken(text)}", err=True)
        return ctx.exit(code)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="heron-core", message="%(package)s %(version)s")
def heron() -> None:
    """Runs topologies: spouts and bolts written in Python, one per process, exact and fast."""


def main() -> None:
    """The entry point of the `heron` script."""
    sys.exit(heron(prog_name="heron"))
