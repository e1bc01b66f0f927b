"""``heron memory``: what the memory of a task holds, and what grows in it."""

from __future__ import annotations

import click

from heron_cli.commands.options import RemoteOptions, remote_options, topology_argument
from heron_cli.commands.task_argument import TaskChoice, task_argument
from heron_cli.view.tasks.memory_text import memory_lines
from heron_cli.view.text import echo, print_json

__all__ = ["memory"]

_LONGEST_S = 300.0


@click.command()
@topology_argument
@task_argument
@click.option(
    "--seconds",
    type=click.FloatRange(min=0.0, max=_LONGEST_S),
    default=5.0,
    show_default=True,
    help="The time between two looks; 0: one look, which traces no allocations.",
)
@remote_options(timeout_s=30.0, timeout_help="The longest wait for an answer after these seconds.")
def memory(name: str, task: TaskChoice, seconds: float, options: RemoteOptions) -> None:
    """Looks at the memory of TASK of the topology NAME twice, and shows what holds it and what has grown.

    The lines that allocate are shown with user code first. The task is slower in between, because each of its
    allocations is traced. One observation of a task is made at a time.
    """
    with options.topology(name) as topology:
        if seconds and not options.as_json:
            what = f"observing {name} task {task.task_id} for {seconds:g} s; it is slower meanwhile"
            echo(f"{what}: its allocations are traced", err=True)
        found = topology.memory(task.task_id, task.component, seconds=seconds)
    if options.as_json:
        print_json(found)
        return
    for line in memory_lines(found):
        echo(line)
