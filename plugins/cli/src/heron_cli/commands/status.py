"""``heron status``: the state of a topology."""

from __future__ import annotations

import click

from heron.clock import wall_s
from heron_cli.commands.options import RemoteOptions, remote_options, topology_argument
from heron_cli.view.console import open_console
from heron_cli.view.status_text import status_text
from heron_cli.view.text import print_json

__all__ = ["status"]


@click.command()
@topology_argument
@remote_options(timeout_s=10.0)
def status(name: str, options: RemoteOptions) -> None:
    """Shows the state of the topology NAME: its tasks and processes, back pressure and errors.

    Without --profile, a topology that runs under one other profile is found there.
    """
    with options.connect(name) as client:
        report = client.status(name, timeout_s=options.timeout_s)
    if options.as_json:
        print_json(report)
    else:
        open_console().print(status_text(report, wall_s()))
