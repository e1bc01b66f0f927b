"""The child processes of an executor. They start from its main thread, so that they cannot outlive the executor."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from heron.driver_kit.child_processes import spawn
from heron.errors import HeronError
from heron.executor.process_restarts import describe_exit

__all__ = ["ChildEnd", "Children"]

_TAIL_BYTES = 4096
_REASON_LENGTH = 500  # characters of a last line that are shown


@dataclass(frozen=True, slots=True)
class ChildEnd:
    """A child that ended: the exit code as in `subprocess`, and a text with the exit code and the last line of
    output."""

    name: str
    code: int
    reason: str


@dataclass(frozen=True, slots=True)
class _Child:
    process: subprocess.Popen[bytes]
    output: Path
    output_start: int


class Children:
    """Starts, reaps and signals children by name; each name has at most one child at a time."""

    def __init__(self) -> None:
        self._children: dict[str, _Child] = {}

    def alive(self) -> frozenset[str]:
        """The names of children that were started and not reaped yet."""
        return frozenset(self._children)

    def pid(self, name: str) -> int:
        """The process id of a child that is alive, else 0."""
        child = self._children.get(name)
        return child.process.pid if child else 0

    def start(self, name: str, argv: Sequence[str], output: Path) -> int:
        """Starts a child, appends its output to a file, and returns its process id.

        Raises:
            HeronError: when the system refuses to start it.
        """
        try:
            with open(output, "ab", opener=_private) as file:
                process = spawn(argv, stdout=file, death_signal=signal.SIGKILL)
                self._children[name] = _Child(process, output, file.tell())
        except OSError as error:
            msg = f"process {name} cannot be started: {error.strerror}: {error.filename}"
            raise HeronError(msg) from error
        return process.pid

    def reap(self) -> tuple[ChildEnd, ...]:
        """The children that have ended since the last call."""
        ended = []
        for name, child in tuple(self._children.items()):
            code = child.process.poll()
            if code is not None:
                del self._children[name]
                _kill_group(child.process.pid)  # programs that user code started must not outlive it
                ended.append(ChildEnd(name, code, _reason(child, code)))
        return tuple(ended)

    def ask(self, name: str) -> None:
        """Sends SIGTERM to a child."""
        child = self._children.get(name)
        if child is not None:
            child.process.terminate()

    def kill(self, name: str) -> None:
        """Sends SIGKILL to a child and to its process group."""
        child = self._children.get(name)
        if child is not None:
            child.process.kill()
            _kill_group(child.process.pid)

    def outputs(self) -> tuple[Path, ...]:
        """The output files of the children that are alive."""
        return tuple(child.output for child in self._children.values())

    def kill_all(self) -> None:
        """Kills all children and waits until they are gone; for an executor that fails."""
        for name in self.alive():
            self.kill(name)
        for child in self._children.values():
            child.process.wait()
        self._children.clear()


def _kill_group(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)


def _reason(child: _Child, code: int) -> str:
    last = _last_line(child.output, child.output_start)
    return f"{describe_exit(code)}: {last}" if last else describe_exit(code)


def _last_line(output: Path, start: int) -> str:
    """The last line that a child wrote; after an exception, it names the exception."""
    try:
        with output.open("rb") as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(max(start if start <= end else 0, end - _TAIL_BYTES))  # the file may have been emptied
            lines = file.read().decode("utf-8", "replace").split("\n")
    except OSError:
        return ""
    return next((line.strip()[:_REASON_LENGTH] for line in reversed(lines) if line.strip()), "")
