"""``heron logs``: what the processes of a topology write, on the machine where they run."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import click
import msgspec

from heron.clock import monotonic_s
from heron.errors import HeronError, StateError, UsageError
from heron_cli.client.log_folder import LogFolder
from heron_cli.client.log_line import LogLine
from heron_cli.client.remote_topology import RemoteTopology
from heron_cli.commands.completion import complete_topology
from heron_cli.commands.remote_options import Remote, RemoteOptions, open_remote, remote_options

__all__ = ["find_logs", "logs"]

_LOOK_S = 0.2
_OVER_S = 1.0  # how often the state manager is asked
_EXIT_INTERRUPTED = 130


@click.command()
@click.argument("name", shell_complete=complete_topology)
@click.option("--task", "task_id", type=click.IntRange(min=1), help="Only this task's.")
@click.option("--follow", "-f", is_flag=True, help="Goes on until the topology ends, or Ctrl-C.")
@click.option("-n", "count", type=click.IntRange(min=0), default=20, show_default=True, help="Lines of each file.")
@remote_options(timeout_s=10.0)
@click.pass_context
def logs(
    context: click.Context, name: str, task_id: int | None, follow: bool, count: int, options: RemoteOptions
) -> None:
    """Shows the last lines of the logs of the topology NAME, or of its last run when it has ended.

    First the engine's own by time (UTC), then what the author's code printed. With --json, one object a line.
    """
    with (
        open_remote(name, options) as remote,
        closing(LogFolder(find_logs(remote), task_id)) as folder,
    ):
        try:
            _print(folder.last(count), options)
            if follow:
                _follow(remote.topology, folder, options)
            else:
                _print(folder.new(final=True), options)
        except KeyboardInterrupt:
            context.exit(_EXIT_INTERRUPTED)


def find_logs(remote: Remote) -> Path:
    """The log folder of the present run, or else of the last one.

    Raises:
        UsageError: when there is none on this machine; says where it is.
    """
    topology = remote.topology
    try:
        run = topology.run
    except UsageError:
        if folder := _last_folder(remote):
            return folder
        raise
    folder = Path(run.log_dir)
    if not folder.is_dir():
        msg = f"the logs of topology {topology.name!r} are not here: it was submitted on {run.host}, into {folder}"
        raise UsageError(msg)
    return folder


def _last_folder(remote: Remote) -> Path | None:
    """The newest folder of a run of that name that has ended."""
    pattern = re.compile(re.escape(remote.topology.name) + "-[0-9a-f]{8}")
    try:
        found = [each for each in remote.log_root.iterdir() if pattern.fullmatch(each.name) and each.is_dir()]
        return max(found, key=lambda each: each.stat().st_mtime, default=None)
    except OSError:
        return None


def _follow(topology: RemoteTopology, folder: LogFolder, options: RemoteOptions) -> None:
    pause = threading.Event()
    look_s = monotonic_s()
    over = False
    while not over:
        if monotonic_s() >= look_s:
            look_s = monotonic_s() + _OVER_S
            over = _over(topology)
        _print(folder.new(final=over), options)
        if not over:
            pause.wait(_LOOK_S)


def _over(topology: RemoteTopology) -> bool:
    try:
        return topology.over()
    except StateError:
        return False  # while the state manager is away, logs go on
    except HeronError:
        return True


def _print(lines: Iterable[LogLine], options: RemoteOptions) -> None:
    for line in lines:
        click.echo(msgspec.json.encode(line).decode() if options.as_json else line.spoken())
