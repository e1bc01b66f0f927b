"""The processes of commands in a sandbox: forked from a template that has imported `heron`, or new interpreters.

A new interpreter needs half a second of a processor before a command begins, and a fork some milliseconds. A forked
command has the command line, environment, folder, output and process group of a new one. It differs in what an
interpreter reads at its start. So a command is a new interpreter if its variables for that differ from those of the
tests, if it has a standard input, or if another program starts it.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO, Protocol

import msgspec

from heron.driver_kit.command_line import can_show_command_line
from heron.driver_kit.fork_server import ForkedProcess, ForkServer, ForkServerError
from heron_testing.forked_command import CommandRequest

__all__ = ["HERON", "SandboxProcess", "start_process"]

HERON = Path(sys.executable).with_name("heron")
"""The program of the command."""

_AT_START = ("PYTHON", "LD_", "LC_", "LANG", "TZ", "MALLOC_")


class SandboxProcess(Protocol):
    """A process of a command: a `subprocess.Popen`, or one that was forked."""

    stdin: IO[bytes] | None
    pid: int
    returncode: int | None

    def poll(self) -> int | None:
        """Return the exit code; None while it runs."""
        ...

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end and return the exit code.

        Raises:
            subprocess.TimeoutExpired: when it still runs after `timeout` seconds.
        """
        ...

    def send_signal(self, sig: int, /) -> None:
        """Send a signal, unless it has ended."""
        ...

    def terminate(self) -> None:
        """Send SIGTERM, unless it has ended."""
        ...

    def kill(self) -> None:
        """Send SIGKILL, unless it has ended."""
        ...


class _Forked:
    """A forked process as far as tests need a `subprocess.Popen`."""

    stdin: IO[bytes] | None = None

    def __init__(self, words: Sequence[str], process: ForkedProcess) -> None:
        self._words, self._process = words, process
        self.pid = process.pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        self.returncode = self._process.poll()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Waits for the end.

        Raises:
            subprocess.TimeoutExpired: after `timeout` seconds.
        """
        if self.poll() is None:
            descriptor = os.pidfd_open(self.pid)
            try:
                if not select.select([descriptor], [], [], timeout)[0]:
                    raise subprocess.TimeoutExpired(self._words, timeout or 0.0)
            finally:
                os.close(descriptor)
        self.returncode = self._process.wait()
        return self.returncode

    def send_signal(self, sig: int, /) -> None:
        if self.poll() is None:
            os.kill(self.pid, sig)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class _Template:
    """The process that forks; it ends with this one."""

    def __init__(self) -> None:
        self.environ = dict(os.environ)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            os.set_inheritable(theirs.fileno(), True)
            words = [sys.executable, "-P", "-m", "heron_testing.command_template", str(theirs.fileno())]
            pid = os.posix_spawn(words[0], words, os.environ)
        self.usable = ours.recv(16) != b""  # after its imports, or when it has ended
        self.server = ForkServer(pid, ours)

    def fork(self, request: CommandRequest, file: Path) -> _Forked | None:
        """A process that becomes the command; None if the template has failed."""
        file.write_bytes(msgspec.json.encode(request))
        try:
            with open(os.devnull, "wb") as null:  # a device
                words = [sys.executable, "-P", "-m", "heron_testing.forked_command", str(file)]
                return _Forked(request.words, self.server.start(words, null))
        except ForkServerError:
            self.usable = False
            return None


@cache
def _template() -> _Template:
    return _Template()


def start_process(
    words: Sequence[str],
    environ: Mapping[str, str],
    cwd: Path,
    stdout: Path,
    stderr: Path,
    stdin: int = subprocess.DEVNULL,
) -> SandboxProcess:
    """Start a command line in a new process group, with its output in two new files."""
    stdout.touch()
    stderr.touch()
    if words[0] == str(HERON) and stdin == subprocess.DEVNULL and can_show_command_line():
        template = _template()
        if template.usable and _at_start(environ) == _at_start(template.environ):
            request = CommandRequest(tuple(words), dict(environ), str(cwd), str(stdout), str(stderr))
            if forked := template.fork(request, stdout.with_name(f"{stdout.name}.request")):
                return forked
    with stdout.open("wb") as out, stderr.open("wb") as err:
        return subprocess.Popen(words, stdin=stdin, stdout=out, stderr=err, env=environ, cwd=cwd, process_group=0)


def _at_start(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environ.items() if name.startswith(_AT_START)}
