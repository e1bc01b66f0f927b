"""``heron stack``: the threads of a task, and what each of them waits for."""

from __future__ import annotations

import click

from heron_cli.commands.options import RemoteOptions, remote_options, topology_argument
from heron_cli.commands.task_argument import TaskChoice, task_argument
from heron_cli.view.console import open_console
from heron_cli.view.tasks.stack_text import stack_text
from heron_cli.view.text import print_json

__all__ = ["stack"]


@click.command()
@topology_argument
@task_argument
@remote_options(timeout_s=5.0)
def stack(name: str, task: TaskChoice, options: RemoteOptions) -> None:
    """Shows the threads of TASK of the topology NAME: their calls, and what each thread waits for.

    TASK is a number, or COMPONENT/NUMBER. The task answers also while its component blocks. The calls are lines of
    source; values of variables are not shown.
    """
    with options.topology(name) as topology:
        stacks = topology.stacks(task.task_id, task.component)
    if options.as_json:
        print_json(stacks)
    else:
        open_console().print(stack_text(stacks), soft_wrap=True)
