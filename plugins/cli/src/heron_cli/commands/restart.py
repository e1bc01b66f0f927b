"""``heron restart``: ends containers and starts them again, one after the other."""

from __future__ import annotations

import click

from heron_cli.client.client import Client
from heron_cli.commands.options import RemoteOptions, remote_options, topology_argument
from heron_cli.topologies.running.restart import RestartedContainer
from heron_cli.view.text import echo, print_json

__all__ = ["restart"]

_EXIT_INTERRUPTED = 130


@click.command()
@topology_argument
@click.argument("container", type=int, required=False)
@click.option("--elsewhere", is_flag=True, help="Starts it on another host, if the scheduler can avoid hosts.")
@remote_options(timeout_s=60.0, timeout_help="The longest wait for each container to be back.")
@click.pass_context
def restart(context: click.Context, name: str, container: int | None, elsewhere: bool, options: RemoteOptions) -> None:
    """Restarts CONTAINER of the topology NAME, or all containers, and waits until they run again.

    Container 0 has the topology manager. With at-least-once delivery, tuples in progress are replayed; with
    at-most-once delivery they are lost. A container on a host that `heron hosts` has blocked starts on another one.
    """
    try:
        with options.connect() as client:
            restarted = _restart(client, name, container, options, elsewhere=elsewhere)
    except KeyboardInterrupt:
        echo(f"heron: interrupted; the containers are still being started, see `heron status {name}`", err=True)
        context.exit(_EXIT_INTERRUPTED)
    if options.as_json:
        print_json({"topology": name, "restarted": {str(each.container_id): each.took_s for each in restarted}})


def _restart(
    client: Client, name: str, container: int | None, options: RemoteOptions, *, elsewhere: bool
) -> tuple[RestartedContainer, ...]:
    def show(each: RestartedContainer) -> None:
        echo(f"container {each.container_id} of {name} is back after {each.took_s:.1f} s")

    shown = None if options.as_json else show
    return client.restart(name, container, elsewhere=elsewhere, timeout_s=options.timeout_s, on_restarted=shown)
