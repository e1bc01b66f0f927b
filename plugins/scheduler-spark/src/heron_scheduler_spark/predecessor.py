"""The executor that ran a container before on this machine: it may still be on its way out, and must be gone first.

A task that was killed took its executor along by SIGTERM, which leaves that one some seconds. A new attempt in the same
run directory ends it at once: two executors would clear each other's files.
"""

from __future__ import annotations

import contextlib
import json
import signal
from pathlib import Path

from heron.clock import wait_for
from heron.driver_kit.child_processes import ProcessIdentity
from heron.driver_kit.private_files import write_private
from heron.errors import SchedulerError

__all__ = ["Predecessor", "noted_executor"]

_GONE_S = 5.0
_POLL_S = 0.02


class Predecessor:
    """``RUN/c<N>.executor`` names the last executor of container N here."""

    def __init__(self, run_dir: Path, container_id: int) -> None:
        self._container_id = container_id
        self._file = run_dir / f"c{container_id}.executor"

    def end(self) -> None:
        """Returns when there is none, or no longer.

        Raises:
            SchedulerError: when it does not end.
        """
        former = noted_executor(self._file)
        if former is None:
            return
        former.signal_group(signal.SIGKILL)
        if not wait_for(lambda: not former.alive(), _GONE_S, _POLL_S):
            msg = f"process {former.pid}, the former executor of container {self._container_id}, does not end"
            raise SchedulerError(msg)

    def note(self, executor: ProcessIdentity) -> None:
        """This one runs now."""
        write_private(self._file, json.dumps({"pid": executor.pid, "start": executor.start}).encode())

    def forget(self) -> None:
        """It has ended; the run directory goes with the last container that had files in it."""
        self._file.unlink(missing_ok=True)
        self._file.with_suffix(".error").unlink(missing_ok=True)  # its last words, which are read
        self.leave()

    def leave(self) -> None:
        """Removes the run directory, if nobody has anything in it."""
        with contextlib.suppress(OSError):
            self._file.parent.rmdir()  # fails, as it should, while others are there


def noted_executor(file: Path) -> ProcessIdentity | None:
    """The executor that such a file names; None when there is no file, or only a part of one."""
    try:
        found = json.loads(file.read_bytes())
        return ProcessIdentity(int(found["pid"]), str(found["start"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
