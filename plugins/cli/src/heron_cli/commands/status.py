"""``heron status``: how a topology is."""

from __future__ import annotations

import sys

import click
from rich.console import Console

from heron.clock import wall_s
from heron_cli.client.status_report import status_report
from heron_cli.commands.completion import complete_topology
from heron_cli.commands.remote_options import RemoteOptions, open_remote, remote_options
from heron_cli.view.json_text import print_json
from heron_cli.view.status_text import status_text

__all__ = ["status"]


@click.command()
@click.argument("name", shell_complete=complete_topology)
@remote_options(timeout_s=10.0)
def status(name: str, options: RemoteOptions) -> None:
    """Shows how the topology NAME is: its tasks and processes, back pressure, errors."""
    with open_remote(name, options) as remote:
        report = status_report(remote)
    if options.as_json:
        print_json(report)
    else:
        Console(width=None if sys.stdout.isatty() else 200).print(status_text(report, wall_s()))
