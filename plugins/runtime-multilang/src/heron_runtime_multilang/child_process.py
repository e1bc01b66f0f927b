"""A child process with three pipes, which the kernel ends together with this process."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path

from heron.driver_kit.child_processes import kill_group
from heron_runtime_multilang.bound_command import bound_command, bound_environment
from heron_runtime_multilang.child_settings import ChildSettings

__all__ = ["ChildEnd", "ChildProcess"]

_STDIN_BYTES = 128 * 1024  # a child loses what it has not read when it dies
_OUTPUT_BYTES = 1024 * 1024  # two threads share the interpreter lock here; a pipe that is full makes the child wait


@dataclass(frozen=True, slots=True)
class ChildEnd:
    """How a child ended.

    Attributes:
        code: as of `subprocess`: negative for a signal.
        fault: why it was killed here; empty if it was not.
        unfinished_bytes: the size of the message that it had begun.
        stderr: the last lines that it wrote there.
    """

    code: int
    fault: str = ""
    unfinished_bytes: int = 0
    stderr: tuple[str, ...] = ()

    @property
    def how(self) -> str:
        """The end in a few words."""
        if self.fault:
            return f"was killed, because {self.fault}"
        return f"ended with exit code {self.code}" if self.code >= 0 else f"was killed by {_signal_name(-self.code)}"

    def describe(self) -> str:
        """The end with all that is known about its reason."""
        half = f", in the middle of a message ({self.unfinished_bytes} bytes)" if self.unfinished_bytes else ""
        lines = "; the last lines of its stderr:\n  " + "\n  ".join(self.stderr) if self.stderr else ""
        return f"{self.how}{half}{lines}"


class ChildProcess:
    """A started child. Start it in the main thread: the kernel ends it when the thread ends that started it."""

    def __init__(self, settings: ChildSettings) -> None:
        """Start the program in its own process group.

        Raises:
            OSError: when the working directory does not exist, or no process can be started.
        """
        folder = settings.folder()
        _make_executable(folder, settings.command[0])
        pipe = subprocess.PIPE
        self._popen = subprocess.Popen(
            bound_command(settings.command),
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            bufsize=0,
            env=bound_environment(settings.environment()),
            cwd=folder,
            process_group=0,
        )
        self.pid = self._popen.pid
        stdin, stdout, stderr = self._pipes()
        self.stdin = _prepared(stdin, _STDIN_BYTES)
        self.stdout, self.stderr = _prepared(stdout, _OUTPUT_BYTES), _prepared(stderr, _OUTPUT_BYTES)
        self.ended = os.pidfd_open(self.pid)  # readable when the process has ended

    def close_stdin(self) -> None:
        """Say that nothing more comes."""
        if self._popen.stdin is not None:
            with contextlib.suppress(OSError):
                self._popen.stdin.close()

    def kill(self) -> None:
        """Kill the process group."""
        kill_group(self.pid)

    def reap(self) -> int:
        """Kill what is left of the group of a child that has ended, release everything, and return its exit code."""
        self.kill()
        code = self._popen.wait()
        for stream in (self._popen.stdin, self._popen.stdout, self._popen.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        os.close(self.ended)
        return code

    def _pipes(self) -> tuple[int, int, int]:
        popen = self._popen
        assert popen.stdin is not None  # noqa: S101  # all are pipes
        assert popen.stdout is not None  # noqa: S101
        assert popen.stderr is not None  # noqa: S101
        return popen.stdin.fileno(), popen.stdout.fileno(), popen.stderr.fileno()


def _make_executable(folder: Path, program: str) -> None:
    """Let a program of the topology's package run: files of a package are unpacked without this right."""
    path = folder / program
    if os.sep in program and path.is_file() and path.is_relative_to(folder) and not os.access(path, os.X_OK):
        path.chmod(path.stat().st_mode | stat.S_IXUSR)


def _prepared(descriptor: int, size: int) -> int:
    os.set_blocking(descriptor, False)
    with contextlib.suppress(OSError):  # the user may have many pipes; smaller ones are only slower
        fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, size)
    return descriptor


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
