"""The owner's side of a fork server, which starts processes without a new interpreter and its imports.

Executors own one, and so does a supervisor on one machine, whose executors are forked. The owner forks the server first
of all, while it has one thread, no socket, no signal handler and no ZeroMQ context. A server is never replaced: a later
fork would copy what the owner has opened by then. Without a server, every process is a new interpreter. So a server
that ends or refuses costs time and memory, and nothing else: `heron.driver_kit.process_starter` goes on without it.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import IO, NoReturn

import msgspec

from heron.driver_kit.command_line import can_show_command_line, show_command_line
from heron.driver_kit.fork_server_loop import ANSWER_BYTES, COMMAND, MODULE, ForkAnswer, other_threads, serve
from heron.errors import HeronError

__all__ = [
    "ForkServer",
    "ForkServerError",
    "ForkedProcess",
    "can_fork",
    "fork_obstacle",
    "start_obstacle",
]

NOTHING: Mapping[str, Sequence[str]] = {}

_OPTIONS = ["-P", "-m"]
_ANSWER_S = 10.0  # imports and a fork on a busy machine; a server that needs longer hangs
_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h


class ForkServerError(HeronError):
    """The fork server has not started a process, and is closed."""


class ForkedProcess:
    """A child that the fork server has started; as far as its owner needs it, a `subprocess.Popen`."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._code: int | None = None

    def poll(self) -> int | None:
        """The exit code as in `subprocess`; None while the process runs."""
        return self._reap(os.WNOHANG)

    def wait(self) -> int:
        """Waits for the end of the process, and returns its exit code."""
        while (code := self._reap(0)) is None:
            pass
        return code

    def terminate(self) -> None:
        """Sends SIGTERM."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """Sends SIGKILL."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def _reap(self, options: int) -> int | None:
        if self._code is None:
            pid, status = os.waitpid(self.pid, options)
            self._code = os.waitstatus_to_exitcode(status) if pid else None
        return self._code


class ForkServer:
    """A fork server that runs; `close` ends it."""

    def __init__(self, pid: int, channel: socket.socket) -> None:
        self.pid = pid
        self._channel = channel
        channel.settimeout(_ANSWER_S)

    @classmethod
    def fork(
        cls, shown: str, death_signal: signal.Signals = signal.SIGKILL, imports: Mapping[str, Sequence[str]] = NOTHING
    ) -> ForkServer:
        """Forks a server.

        `shown` is in its command line; `death_signal` is what its processes get if this one ends. Before it forks the
        first process of a module in `imports`, it imports the modules there.

        Raises:
            OSError: when the system refuses.
        """
        owner_pid = os.getpid()
        ours, servers = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        pid = os.fork()
        if pid == 0:
            ours.close()
            _be_server(servers, owner_pid, death_signal, imports, shown)
        servers.close()
        return cls(pid, ours)

    def start(self, words: Sequence[str], output: IO[bytes]) -> ForkedProcess:
        """Starts a process with this command line, as a child of this process in a new process group.

        Raises:
            ForkServerError: when the server has ended, hangs or refuses.
        """
        with _adopting():
            try:
                socket.send_fds(self._channel, [msgspec.json.encode(tuple(words))], [output.fileno()])
                answer = self._channel.recv(ANSWER_BYTES)
            except OSError:
                answer = self._last_answer()
        if not answer:
            self.close()
            msg = "the fork server has ended"
            raise ForkServerError(msg)
        found = msgspec.json.decode(answer, type=ForkAnswer)
        if found.error:
            self.close()
            raise ForkServerError(found.error)
        return ForkedProcess(found.pid)

    def close(self) -> None:
        """Ends the server; the processes that it has started stay. Idempotent."""
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.pid = 0
        self._channel.close()

    def _last_answer(self) -> bytes:
        """Ends a server that does not answer; returns the answer that it has given meanwhile."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        self.pid = 0
        with suppress(OSError):
            return self._channel.recv(ANSWER_BYTES, socket.MSG_DONTWAIT)
        return b""


def _be_server(
    channel: socket.socket,
    owner_pid: int,
    death_signal: signal.Signals,
    imports: Mapping[str, Sequence[str]],
    shown: str,
) -> NoReturn:
    os.setpgid(0, 0)  # the signals of a terminal are for the owner
    show_command_line((sys.executable, *_OPTIONS, COMMAND, shown))
    os.closerange(3, channel.fileno())
    os.closerange(channel.fileno() + 1, os.sysconf("SC_OPEN_MAX"))
    serve(channel, owner_pid, death_signal, imports)
    sys.exit()


def can_fork(words: Sequence[str]) -> bool:
    """Whether a command line is that of a role in this interpreter, with the options of this interpreter."""
    return [*words[:MODULE]] == [sys.executable, *_OPTIONS] and len(words) > MODULE


def fork_obstacle() -> str:
    """Why this process cannot have a fork server; "" if nothing prevents it."""
    return (
        _system_obstacle()
        or start_obstacle(sys.orig_argv)
        or ("a trace function is set" if sys.gettrace() or sys.getprofile() or "coverage" in sys.modules else "")
    )


def _system_obstacle() -> str:
    if sys.platform != "linux" or not can_show_command_line():
        return "the system has no PR_SET_MM_MAP"
    if sys.stdout is None or sys.stderr is None:
        return "this process has no output"
    others = other_threads()
    return f"the threads {', '.join(others)} run" if others else ""


def start_obstacle(command: Sequence[str]) -> str:
    """The interpreter must have the options that a new one would get: they hold for the processes that it forks."""
    if [*command[1:MODULE]] != _OPTIONS:
        return f"this process was not started as `python {' '.join(_OPTIONS)} MODULE`"
    return ""


@contextmanager
def _adopting() -> Iterator[None]:
    """Makes orphans among the descendants children of this process, so that the forked process becomes one."""
    prctl = ctypes.CDLL(None).prctl
    prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
