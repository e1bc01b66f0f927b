"""The executors of a job as processes: started, asked to end, killed, and reaped with the reason of their end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from heron.kernel.spawn import spawn
from heron_scheduler_local.job_folder import JobFolder, write_private
from heron_scheduler_local.process_identity import ProcessIdentity

__all__ = ["Executors", "Exit"]

_REASON_CHARACTERS = 500
_TAIL_BYTES = 4096
_CONTAINER = "{container}"  # in the command: the id of the container


@dataclass(frozen=True, slots=True)
class Exit:
    """An executor that ended; `error` is empty for exit code 0."""

    container_id: int
    error: str


@dataclass(frozen=True, slots=True)
class _Running:
    process: subprocess.Popen[bytes]
    identity: ProcessIdentity
    reason_file: Path
    stderr_file: Path


class Executors:
    """Owns the processes. Used from the main thread: an executor's parent-death signal is tied to it."""

    def __init__(self, folder: JobFolder, command: Sequence[str]) -> None:
        self._folder = folder
        self._command = tuple(command)
        self._running: dict[int, _Running] = {}

    def start(self, container_id: int, attempt: int) -> None:
        """Raises OSError or ValueError when it cannot be started."""
        spec_file = self._folder.spec_file(container_id)
        spec = json.loads(spec_file.read_bytes())
        write_private(spec_file, json.dumps({**spec, "attempt": attempt}).encode())
        run_dir, log_dir = Path(spec["run_dir"]), Path(spec["log_dir"])
        run_dir.mkdir(mode=0o700, exist_ok=True)  # the last executor that leaves removes it
        log_dir.mkdir(mode=0o700, exist_ok=True)
        reason_file = run_dir / f"c{container_id}.error"
        reason_file.unlink(missing_ok=True)
        stderr_file = log_dir / f"executor-{container_id}.err"
        with stderr_file.open("wb") as stderr:
            command = [word.replace(_CONTAINER, str(container_id)) for word in self._command]
            process = spawn([*command, str(spec_file)], stdout=stderr, death_signal=signal.SIGTERM)
        identity = ProcessIdentity.of(process.pid)
        self._running[container_id] = _Running(process, identity, reason_file, stderr_file)

    def identity(self, container_id: int) -> ProcessIdentity | None:
        """Who runs the container now; None when nobody does."""
        running = self._running.get(container_id)
        return running.identity if running else None

    def terminate(self, container_id: int) -> None:
        if running := self._running.get(container_id):
            running.process.terminate()

    def kill(self, container_id: int) -> None:
        """Ends the executor and its process group at once."""
        if running := self._running.get(container_id):
            _kill_group(running.process.pid)

    def kill_now(self, container_id: int) -> None:
        """As `kill`, and reaps it: returns when it is gone."""
        if running := self._running.pop(container_id, None):
            _kill_group(running.process.pid)
            running.process.wait()

    def kill_all(self) -> None:
        for container_id in list(self._running):
            self.kill_now(container_id)

    def reap(self) -> tuple[Exit, ...]:
        """Those that have ended since the last call; what they left in their process groups is killed."""
        exits: list[Exit] = []
        for container_id, running in list(self._running.items()):
            pid = running.process.pid
            # The group is cleared before its leader is reaped: until then its number cannot belong to others.
            if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                continue
            _kill_group(pid)
            code = running.process.wait()
            del self._running[container_id]
            exits.append(Exit(container_id, _reason(code, running) if code else ""))
        return tuple(exits)


def _kill_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return  # nobody is left in it (PermissionError: only the zombie, on macOS)


def _reason(code: int, running: _Running) -> str:
    """What ended it: its own word in ``c<N>.error``, else the last line it wrote to stderr, with the exit code."""
    end = f"exit code {code}" if code > 0 else f"killed by {_signal_name(-code)}"
    said = _last_line(running.reason_file) or (_last_line(running.stderr_file) if code > 0 else "")
    return f"{end}: {said}" if said else end


def _signal_name(number: int) -> str:
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
