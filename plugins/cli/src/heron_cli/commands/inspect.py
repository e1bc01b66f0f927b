"""``heron inspect``: tuples that a task receives and emits."""

from __future__ import annotations

import click

from heron_cli.commands.options import RemoteOptions, remote_options, topology_argument
from heron_cli.commands.task_argument import TaskChoice, task_argument
from heron_cli.view.tasks.tuples_text import tuples_lines
from heron_cli.view.text import echo, print_json

__all__ = ["inspect"]

_LONGEST_S = 300.0
_MOST = 100


@click.command()
@topology_argument
@task_argument
@click.option(
    "--tuples",
    type=click.IntRange(min=1, max=_MOST),
    default=10,
    show_default=True,
    help="The number of tuples of each direction.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0.0, max=_LONGEST_S, min_open=True),
    default=10.0,
    show_default=True,
    help="The longest wait for these tuples.",
)
@remote_options(timeout_s=10.0, timeout_help="The longest wait for an answer after these seconds.")
def inspect(name: str, task: TaskChoice, tuples: int, seconds: float, options: RemoteOptions) -> None:
    """Shows the next tuples that TASK of the topology NAME receives and emits.

    Values are shortened, and secrets that the task knows of are hidden. The topology must allow it with
    topology.inspect.tuples.
    """
    with options.topology(name) as topology:
        found = topology.tuples(task.task_id, task.component, tuples=tuples, seconds=seconds)
    if options.as_json:
        print_json(found)
        return
    for line in tuples_lines(found):
        echo(line)
