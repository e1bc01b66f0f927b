"""``heron activate`` and ``heron deactivate``: a topology resumes, or pauses."""

from __future__ import annotations

import threading

import click

from heron.clock import monotonic_s
from heron.errors import UnreachableError
from heron.ipc.keys import Speaker
from heron_cli.client.remote_topology import RemoteTopology
from heron_cli.client.watcher import ENDED
from heron_cli.commands.completion import complete_topology
from heron_cli.commands.remote_options import RemoteOptions, open_remote, remote_options
from heron_cli.view.json_text import print_json

__all__ = ["activate", "deactivate", "set_state"]

_LOOK_S = 0.1


@click.command()
@click.argument("name", shell_complete=complete_topology)
@remote_options(timeout_s=30.0)
def activate(name: str, options: RemoteOptions) -> None:
    """Resumes the topology NAME: its spouts are asked for tuples again. One that runs already goes on."""
    _change(name, options, "running")


@click.command()
@click.argument("name", shell_complete=complete_topology)
@remote_options(timeout_s=30.0)
def deactivate(name: str, options: RemoteOptions) -> None:
    """Pauses the topology NAME: its spouts are not asked for tuples any more.

    What is under way is still processed and acked. It stays paused, whatever dies meanwhile, until `heron activate`.
    """
    _change(name, options, "paused")


def set_state(topology: RemoteTopology, state: str) -> str:
    """Makes it ``running`` or ``paused``, once it has started; returns the state before.

    Raises:
        UnreachableError: when it has not started within the time limit; nothing was changed.
        HeronError: as `RemoteTopology.change_state` does.
    """
    deadline_s = monotonic_s() + topology.timeout_s
    pause = threading.Event()
    while not ((status := topology.status(Speaker.CONTROL)).plan_version or status.state in ENDED):
        if monotonic_s() >= deadline_s:
            missing = sorted({task.container_id for task in status.tasks if task.state == "starting"})
            msg = (
                f"topology {topology.name!r} is still starting after {topology.timeout_s:g} s, it waits for containers "
                f"{missing}; nothing was changed, see `heron status {topology.name}`"
            )
            raise UnreachableError(msg)
        pause.wait(_LOOK_S)
    topology.change_state(state)
    return status.state


def _change(name: str, options: RemoteOptions, state: str) -> None:
    with open_remote(name, options) as remote:
        before = set_state(remote.topology, state)
        run = remote.topology.run
    if options.as_json:
        print_json({"topology": name, "topology_id": run.topology_id, "state": state, "before": before})
    else:
        click.echo(f"{name} was {state} already" if before == state else f"{name} is {state}")
