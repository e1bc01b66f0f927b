"""``heron activate`` and ``heron deactivate``: a topology resumes or pauses."""

from __future__ import annotations

import click

from heron_cli.client.client import StateChange
from heron_cli.commands.options import RemoteOptions, remote_options, topology_argument
from heron_cli.view.text import echo, print_json

__all__ = ["activate", "deactivate"]


@click.command()
@topology_argument
@remote_options(timeout_s=30.0)
def activate(name: str, options: RemoteOptions) -> None:
    """Resumes the spouts of the topology NAME. A topology that runs already is not changed."""
    with options.connect() as client:
        _print(client.activate(name, timeout_s=options.timeout_s), as_json=options.as_json)


@click.command()
@topology_argument
@remote_options(timeout_s=30.0)
def deactivate(name: str, options: RemoteOptions) -> None:
    """Pauses the spouts of the topology NAME.

    Tuples that were emitted are still processed and acked. The topology stays paused until `heron activate`, even when
    processes of it are restarted.
    """
    with options.connect() as client:
        _print(client.deactivate(name, timeout_s=options.timeout_s), as_json=options.as_json)


def _print(change: StateChange, *, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "topology": change.topology,
                "topology_id": change.topology_id,
                "state": change.state,
                "before": change.before,
            }
        )
    elif change.before == change.state:
        echo(f"{change.topology} was {change.state} already")
    else:
        echo(f"{change.topology} is {change.state}")
