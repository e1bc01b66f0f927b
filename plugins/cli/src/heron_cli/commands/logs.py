"""``heron logs``: the logs of a topology's processes, on the machine where they run."""

from __future__ import annotations

import functools

import click
import msgspec

from heron.errors import UsageError
from heron_cli.commands.options import RemoteOptions, remote_options, topology_argument
from heron_cli.view.text import echo, json_text

__all__ = ["logs"]

_EXIT_INTERRUPTED = 130


@click.command()
@topology_argument
@click.option("--task", "task_id", type=click.IntRange(min=1), help="Shows only the logs of this task.")
@click.option("--follow", "-f", is_flag=True, help="Continues until the topology ends, or Ctrl-C.")
@click.option("--search", metavar="TEXT", default="", help="Shows only lines that contain TEXT, in any case.")
@click.option("-n", "count", type=click.IntRange(min=0), default=20, show_default=True, help="Lines of each file.")
@remote_options(timeout_s=10.0)
@click.pass_context
def logs(
    context: click.Context,
    name: str,
    task_id: int | None,
    follow: bool,
    search: str,
    count: int,
    options: RemoteOptions,
) -> None:
    """Shows the last lines of the logs of the topology NAME, or of its last run when it has ended.

    The lines of the engine come first, by time (UTC); then the output of the author's code. With --json, each line is
    an object.
    """
    if follow and search:
        msg = "--search reads the logs once, and --follow goes on; give one of them"
        raise UsageError(msg)
    with options.connect(name) as client:
        read = client.follow_logs if follow else functools.partial(client.logs, search=search)
        try:
            for line in read(name, task_id=task_id, lines=count, timeout_s=options.timeout_s):
                echo(json_text(msgspec.json.encode(line)) if options.as_json else line.formatted())
        except KeyboardInterrupt:
            context.exit(_EXIT_INTERRUPTED)
