"""An executor as a child process: started, asked to end, killed with its group, and reaped with the reason."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from heron.driver_kit.child_processes import ProcessIdentity, kill_group, spawn
from heron.driver_kit.parent_process import EXIT_TEMPORARY
from heron_scheduler_kit.run_dir import own_run_dir

__all__ = ["ExecutorProcess", "signal_name"]

_REASON_CHARACTERS = 500
_BY_SIGNAL = 128  # and its number: how a process ends that was told to
_FROM_OUTSIDE = (EXIT_TEMPORARY, *(_BY_SIGNAL + each for each in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)))
_TAIL_BYTES = 4096


class ExecutorProcess:
    """Used from the main thread: the parent-death signal is tied to the thread that started the process."""

    def __init__(self, command: Sequence[str], spec_file: Path, spec: Mapping[str, object]) -> None:
        """Starts it: `command` with the path of the spec, which is read already.

        Raises:
            SchedulerError: when the run directory is not this user's alone.
            OSError: when a folder, or the process, cannot be made.
            ValueError: when the command cannot be one.
        """
        container_id = spec["container_id"]
        run_dir, log_dir = Path(str(spec["run_dir"])), Path(str(spec["log_dir"]))
        own_run_dir(run_dir)  # the last executor that leaves removes it
        log_dir.mkdir(mode=0o700, exist_ok=True, parents=True)
        self._reason_file = run_dir / f"c{container_id}.error"
        self._reason_file.unlink(missing_ok=True)
        self._stderr_file = log_dir / f"executor-{container_id}.err"
        with self._stderr_file.open("wb") as stderr:
            argv = [*command, str(spec_file)]
            self._process = spawn(argv, stdout=stderr, death_signal=signal.SIGTERM)
        self.identity = ProcessIdentity.of(self._process.pid)
        self.at_fault = False
        """Whether it has ended by its own failing: not killed, not told to, and not for want of its surroundings."""

    def terminate(self) -> None:
        self._process.terminate()

    def kill(self) -> None:
        """Ends the executor and its process group at once."""
        kill_group(self._process.pid)

    def kill_now(self) -> None:
        """As `kill`, and reaps it: returns when it is gone."""
        self.kill()
        self._process.wait()

    def ended(self) -> str | None:
        """Why it ended ("" for exit code 0), None while it runs; what it left in its process group is killed."""
        pid = self._process.pid
        # The group is cleared before its leader is reaped: until then its number cannot belong to others.
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            return None
        kill_group(pid)
        code = self._process.wait()
        self.at_fault = code > 0 and code not in _FROM_OUTSIDE
        return self._reason(code) if code else ""

    def _reason(self, code: int) -> str:
        """Its own word in ``c<N>.error``, else the last line it wrote to stderr, with the exit code."""
        end = f"exit code {code}" if code > 0 else f"killed by {signal_name(-code)}"
        said = _last_line(self._reason_file) or (_last_line(self._stderr_file) if code > 0 else "")
        return f"{end}: {said}" if said else end


def signal_name(number: int) -> str:
    """SIGKILL, say; real-time signals have numbers only."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _last_line(path: Path) -> str:
    try:
        with path.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - _TAIL_BYTES))
            lines = file.read().decode("utf-8", "replace").split("\n")
    except OSError:
        return ""
    return next((line.strip() for line in reversed(lines) if line.strip()), "")[:_REASON_CHARACTERS]
