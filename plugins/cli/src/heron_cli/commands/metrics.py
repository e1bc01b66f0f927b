"""``heron metrics``: the metrics of a topology's processes, with rates over the last period of export."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator

import click
import msgspec
from rich.live import Live

from heron.errors import UsageError
from heron.ipc.documents.metrics_table import MetricsRow
from heron_cli.commands.options import RemoteOptions, remote_options, topology_argument
from heron_cli.view.console import open_console
from heron_cli.view.metrics_text import metrics_text
from heron_cli.view.text import echo, json_text, print_json

__all__ = ["metrics"]

_EXIT_INTERRUPTED = 130


@click.command()
@topology_argument
@click.option("--component", default="", help="Shows only this component, by task.")
@click.option("--task", "task_id", type=click.IntRange(min=1), default=None, help="Shows only this task.")
@click.option("--watch", is_flag=True, help="Continues until the topology ends, or Ctrl-C.")
@remote_options(timeout_s=10.0)
@click.pass_context
def metrics(
    context: click.Context, name: str, component: str, task_id: int | None, watch: bool, options: RemoteOptions
) -> None:
    """Shows the metrics of the topology NAME: sums by component, then the engine's own processes.

    Totals are since the start of each process; rates and percentiles are those of the last period of export.
    """
    with options.open(name) as client:
        watched = client.watch_metrics(name, component=component, task_id=task_id or 0, timeout_s=options.timeout_s)
        first = next(watched)
        tables = itertools.chain([first], _until_ended(watched) if watch else ())
        try:
            if not watch and options.as_json:
                print_json(first)
            elif options.as_json:
                for rows in tables:  # one line for each period
                    echo(json_text(msgspec.json.encode(rows)))
            else:
                _show(tables, in_place=watch and sys.stdout.isatty())
        except KeyboardInterrupt:
            context.exit(_EXIT_INTERRUPTED)
        finally:
            watched.close()


def _until_ended(watched: Iterator[tuple[MetricsRow, ...]]) -> Iterator[tuple[MetricsRow, ...]]:
    try:
        yield from watched
    except UsageError as end:
        echo(f"heron: {end}", err=True)


def _show(tables: Iterator[tuple[MetricsRow, ...]], *, in_place: bool) -> None:
    console = open_console()
    if not in_place:
        for rows in tables:
            console.print(metrics_text(rows))
        return
    with Live(console=console, auto_refresh=False, vertical_overflow="visible") as live:
        for rows in tables:
            live.update(metrics_text(rows), refresh=True)
