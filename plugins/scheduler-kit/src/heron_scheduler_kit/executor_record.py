"""The file ``RUN/c<N>.executor``, which names the last executor of container N on this machine.

A killed task ends its executor by SIGTERM, and the executor may need some seconds. A new attempt in the same run
directory reads the file and kills that executor first: two executors would delete each other's files. The file also
shows whether a run directory is still in use. If all processes of a container were killed, no other process removes it.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import stat
from pathlib import Path

from heron.clock import wait_for, wall_s
from heron.driver_kit.child_processes import ProcessIdentity
from heron.driver_kit.private_files import write_private
from heron.errors import SchedulerError

__all__ = ["ExecutorRecord", "remove_stale_run_dirs"]

_GONE_S = 5.0
_POLL_S = 0.02
_NAME = re.compile(r"heron-[a-z0-9_]{8}")
_QUIET_S = 60.0  # a container that is being started has changed its run directory, and has no record in it yet


class ExecutorRecord:
    """The record of one container in a run directory."""

    def __init__(self, run_dir: Path, container_id: int) -> None:
        self._container_id = container_id
        self._file = run_dir / f"c{container_id}.executor"

    def kill_previous(self) -> None:
        """Kill the recorded executor and wait until it has ended.

        Raises:
            SchedulerError: when it does not end within 5 s.
        """
        previous = _read(self._file)
        if previous is None:
            return
        previous.signal_group(signal.SIGKILL)
        if not wait_for(lambda: not previous.alive(), _GONE_S, _POLL_S):
            msg = (
                f"process {previous.pid}, the previous executor of container {self._container_id}, has not ended "
                f"within {_GONE_S:g} s after SIGKILL; see why it hangs"
            )
            raise SchedulerError(msg)

    def write(self, executor: ProcessIdentity) -> None:
        """Record the executor that runs now. Raises OSError."""
        write_private(self._file, json.dumps({"pid": executor.pid, "start": executor.start}).encode())

    def is_of(self, executor: ProcessIdentity) -> bool:
        """Return whether no later executor is recorded."""
        return _read(self._file) in {None, executor}

    def remove(self) -> None:
        """Remove the record of an executor that has ended, and the run directory if it is empty then."""
        self._file.unlink(missing_ok=True)
        self._file.with_suffix(".error").unlink(missing_ok=True)  # its last message, which has been read
        self.remove_run_dir()

    def remove_run_dir(self) -> None:
        """Remove the run directory if it is empty."""
        with contextlib.suppress(OSError):  # other containers have files there
            self._file.parent.rmdir()


def remove_stale_run_dirs(run_dir: Path) -> None:
    """Remove the directories beside `run_dir` whose recorded executors were of this user and have all ended."""
    try:
        beside = [each for each in run_dir.parent.iterdir() if each != run_dir and _NAME.fullmatch(each.name)]
    except OSError:
        return
    for path in beside:
        if _is_stale(path):
            shutil.rmtree(path, ignore_errors=True)


def _is_stale(path: Path) -> bool:
    try:
        found = path.lstat()
        private = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077
        if not private or wall_s() - found.st_mtime < _QUIET_S:
            return False
        executors = [_read(each) for each in path.glob("c*.executor")]
    except OSError:
        return False
    recorded = [each for each in executors if each is not None]
    return bool(recorded) and all(each.is_from_here() and not each.alive() for each in recorded)


def _read(file: Path) -> ProcessIdentity | None:
    """Return the recorded executor; None when the file is absent or incomplete."""
    try:
        found = json.loads(file.read_bytes())
        return ProcessIdentity(int(found["pid"]), str(found["start"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
