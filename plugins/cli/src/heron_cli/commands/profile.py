"""``heron profile``: where a task spends its time."""

from __future__ import annotations

import os
from pathlib import Path

import click

from heron.errors import UsageError
from heron_cli.client.speedscope import speedscope_file
from heron_cli.commands.options import RemoteOptions, remote_options, topology_argument
from heron_cli.commands.task_argument import TaskChoice, task_argument
from heron_cli.view.tasks.flame_graph import flame_graph
from heron_cli.view.tasks.profile_text import profile_lines
from heron_cli.view.text import echo, print_json

__all__ = ["profile"]

_GRAPH, _SAMPLES = ".svg", ".speedscope.json"
_LONGEST_S = 300.0


@click.command()
@topology_argument
@task_argument
@click.option(
    "--seconds",
    type=click.FloatRange(min=0.0, max=_LONGEST_S, min_open=True),
    default=10.0,
    show_default=True,
    help="How long the task is sampled.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=None,
    help="Writes FILE.svg and FILE.speedscope.json; by default NAME-TASK in this folder.",
    metavar="FILE",
)
@remote_options(timeout_s=10.0, timeout_help="The longest wait for an answer after these seconds.")
def profile(name: str, task: TaskChoice, seconds: float, out: Path | None, options: RemoteOptions) -> None:
    """Samples TASK of the topology NAME for some seconds, and shows in which functions it spends its time.

    Writes a flame graph, and the samples for speedscope. Time on a processor and time off it are apart, and so is user
    code. One profile of a task is taken at a time.
    """
    graph, samples = _files(out or Path(f"{name}-{task.task_id}"))
    with options.topology(name) as topology:
        found = topology.profile(task.task_id, task.component, seconds=seconds)
    try:
        graph.write_text(flame_graph(found), encoding="utf-8")
        samples.write_bytes(speedscope_file(found))
    except OSError as error:
        msg = f"the profile cannot be written: {error}; give another --out"
        raise UsageError(msg) from error
    if options.as_json:
        print_json(found)
        return
    for line in profile_lines(found):
        echo(line)
    echo(f"\nflame graph: {graph}\nspeedscope: {samples}")


def _files(out: Path) -> tuple[Path, Path]:
    """Return the two files. Checks them before the profile is taken, as far as possible."""
    base = str(out)
    for suffix in (_SAMPLES, _GRAPH):
        base = base.removesuffix(suffix)
    folder = Path(base).parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        msg = f"--out {out}: {folder} is not a folder in which files can be written"
        raise UsageError(msg)
    return Path(base + _GRAPH), Path(base + _SAMPLES)
