"""``heron metrics``: what the processes of a topology measure, with rates over the last second or so."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator

import click
import msgspec
from rich.console import Console
from rich.live import Live

from heron.errors import UsageError
from heron.ipc.metrics_table import MetricsRow
from heron_cli.client.remote_topology import RemoteTopology
from heron_cli.commands.completion import complete_topology
from heron_cli.commands.remote_options import RemoteOptions, open_remote, remote_options
from heron_cli.view.json_text import print_json
from heron_cli.view.metrics_text import metrics_text

__all__ = ["metrics"]

_WATCH_S = 1.0  # the period of export, unless it is configured
_EXIT_INTERRUPTED = 130


@click.command()
@click.argument("name", shell_complete=complete_topology)
@click.option("--component", default="", help="Only this one, each of its tasks.")
@click.option("--task", "task_id", type=click.IntRange(min=1), default=None, help="Only this one.")
@click.option("--watch", is_flag=True, help="Goes on until the topology ends, or Ctrl-C.")
@remote_options(timeout_s=10.0)
@click.pass_context
def metrics(
    context: click.Context, name: str, component: str, task_id: int | None, watch: bool, options: RemoteOptions
) -> None:
    """Shows what the processes of the topology NAME measure: sums by component, then the engine's own processes.

    Totals are since the start of each process; rates and percentiles are those of the last period of export.
    """
    with open_remote(name, options) as remote:
        tables = _tables(remote.topology, component, task_id or 0, watch=watch)
        try:
            if not watch and options.as_json:
                print_json(next(tables))
            elif options.as_json:
                for rows in tables:  # one line for each look
                    click.echo(msgspec.json.encode(rows).decode())
            else:
                _show(tables, in_place=watch and sys.stdout.isatty())
        except KeyboardInterrupt:
            context.exit(_EXIT_INTERRUPTED)


def _tables(topology: RemoteTopology, component: str, task_id: int, *, watch: bool) -> Iterator[tuple[MetricsRow, ...]]:
    """The metrics now and, if they are watched, once more every second, until the topology ends."""
    yield topology.metrics(component, task_id, by_task=bool(component))
    pause = threading.Event()
    while watch:
        pause.wait(_WATCH_S)
        try:
            yield topology.metrics(component, task_id, by_task=bool(component))
        except UsageError as end:
            click.echo(f"heron: {end}", err=True)
            return


def _show(tables: Iterator[tuple[MetricsRow, ...]], *, in_place: bool) -> None:
    console = Console(width=None if sys.stdout.isatty() else 200)
    if not in_place:
        for rows in tables:
            console.print(metrics_text(rows))
        return
    with Live(console=console, auto_refresh=False, vertical_overflow="visible") as live:
        for rows in tables:
            live.update(metrics_text(rows), refresh=True)
