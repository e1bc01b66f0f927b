"""An executor as a child process."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from heron.driver_kit.child_processes import ProcessIdentity, kill_group
from heron.driver_kit.parent_process import EXIT_TEMPORARY
from heron.driver_kit.process_starter import ProcessStarter
from heron_scheduler_kit.run_dir import own_run_dir

__all__ = ["ExecutorProcess", "signal_name"]

_REASON_CHARACTERS = 500
_BY_SIGNAL = 128  # plus the number of the signal: the exit code of a process that a signal ended in order
_FROM_OUTSIDE = (EXIT_TEMPORARY, *(_BY_SIGNAL + each for each in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)))
_TAIL_BYTES = 4096


class ExecutorProcess:
    """One executor. Use it from the main thread: the kernel ties the parent-death signal to the starting thread."""

    def __init__(
        self,
        command: Sequence[str],
        spec_file: Path,
        spec: Mapping[str, object],
        starter: ProcessStarter | None = None,
    ) -> None:
        """Start `command` with the path of the spec as its last argument; `spec` is the content of that file.

        Without `starter` it is a new interpreter, which gets SIGTERM when this process ends.

        Raises:
            SchedulerError: when other users can enter the run directory.
            OSError: when a folder or the process cannot be created.
            ValueError: when the command has a null character.
        """
        container_id = spec["container_id"]
        run_dir, log_dir = Path(str(spec["run_dir"])), Path(str(spec["log_dir"]))
        own_run_dir(run_dir)  # the last executor that ends removes it
        log_dir.mkdir(mode=0o700, exist_ok=True, parents=True)
        self._reason_file = run_dir / f"c{container_id}.error"
        self._reason_file.unlink(missing_ok=True)
        self._stderr_file = log_dir / f"executor-{container_id}.err"
        with self._stderr_file.open("wb") as stderr:
            starter = starter or ProcessStarter(signal.SIGTERM)
            self._process = starter.start([*command, str(spec_file)], stderr)
        self.identity = ProcessIdentity.of(self._process.pid)
        self.at_fault = False
        """Whether it failed by itself: it was not killed, not told to end, and did not lack resources."""

    def terminate(self) -> None:
        self._process.terminate()

    def kill(self) -> None:
        """Kill the executor and its process group."""
        kill_group(self._process.pid)

    def kill_now(self) -> None:
        """Kill the executor and its process group, reap it, and return when it is gone."""
        self.kill()
        self._process.wait()

    def ended(self) -> str | None:
        """Return why it ended ("" for exit code 0), or None while it runs; kills the rest of its process group."""
        pid = self._process.pid
        # Kill the group before the leader is reaped: until then no other process can get its number.
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            return None
        kill_group(pid)
        code = self._process.wait()
        self.at_fault = code > 0 and code not in _FROM_OUTSIDE
        return self._reason(code) if code else ""

    def _reason(self, code: int) -> str:
        """The exit code with the text of ``c<N>.error``, or else with the last line on stderr."""
        end = f"exit code {code}" if code > 0 else f"killed by {signal_name(-code)}"
        said = _last_line(self._reason_file) or (_last_line(self._stderr_file) if code > 0 else "")
        return f"{end}: {said}" if said else end


def signal_name(number: int) -> str:
    """Return the name of a signal, such as SIGKILL, or its number for a real-time signal."""
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
