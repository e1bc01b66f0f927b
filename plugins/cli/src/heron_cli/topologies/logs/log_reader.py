"""Finds the logs of a topology on this machine, and follows them until the topology ends."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

from heron.clock import monotonic_s
from heron.errors import HeronError, SchedulerError, StateError, UsageError
from heron_cli.topologies.logs.log_files import LogFolder, LogLine
from heron_cli.topologies.logs.remote_logs import RemoteLogs
from heron_cli.topologies.running.remote_topology import RemoteTopology

__all__ = ["find_logs", "follow_logs", "follow_remote", "last_logs"]

_POLL_S = 0.2
_OVER_S = 1.0  # the period of questions to the state manager


def find_logs(topology: RemoteTopology, log_root: Path) -> Path:
    """Return the log folder of the present run or else of the last one.

    Raises:
        UsageError: when there is none on this machine; the message names the place of the logs.
    """
    try:
        run = topology.run
    except UsageError:
        if folder := _last_folder(topology.name, log_root):
            return folder
        raise
    folder = Path(run.log_dir)
    if not folder.is_dir():
        msg = f"the logs of topology {topology.name!r} are not here: it was submitted on {run.host}, into {folder}"
        raise UsageError(msg)
    return folder


def last_logs(folder: Path, task_id: int | None, lines: int) -> tuple[LogLine, ...]:
    """Return the last lines of each file in the folder, of all tasks or of one.

    Raises:
        UsageError: when the task has no logs there.
    """
    with closing(LogFolder(folder, task_id)) as logs:
        return (*logs.last(lines), *logs.new(final=True))


def follow_logs(topology: RemoteTopology, folder: Path, task_id: int | None, lines: int) -> Iterator[LogLine]:
    """Yield the last lines, then new lines until the topology ends. Raises as `last_logs` does."""
    pause = threading.Event()
    check_s = monotonic_s()
    over = False
    with closing(LogFolder(folder, task_id)) as logs:
        yield from logs.last(lines)
        while not over:
            if monotonic_s() >= check_s:
                check_s = monotonic_s() + _OVER_S
                over = _over(topology)
            yield from logs.new(final=over)
            if not over:
                pause.wait(_POLL_S)


def follow_remote(topology: RemoteTopology, logs: RemoteLogs, lines: int) -> Iterator[LogLine]:
    """Yield the last lines, then new lines until the topology ends, of logs that a scheduler keeps."""
    pause = threading.Event()
    yield from logs.last(lines)
    over = False
    while not over:
        pause.wait(_OVER_S)
        over = _over(topology)  # before the lines, whose last ones come with the end
        with suppress(SchedulerError):  # the scheduler is away
            yield from logs.new()


def _last_folder(name: str, log_root: Path) -> Path | None:
    """Return the newest folder of a run of that name that has ended."""
    pattern = re.compile(re.escape(name) + "-[0-9a-f]{8}")
    try:
        found = [each for each in log_root.iterdir() if pattern.fullmatch(each.name) and each.is_dir()]
        return max(found, key=lambda each: each.stat().st_mtime, default=None)
    except OSError:
        return None


def _over(topology: RemoteTopology) -> bool:
    try:
        return topology.over()
    except StateError:
        return False  # while the state manager is away, the logs go on
    except HeronError:
        return True
