"""One server as a child process: started until it answers, ended by its process id."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path

from heron.driver_kit.child_processes import spawn
from heron.errors import HeronError
from heron_testing.waiting import wait_until
from heron_testing_servers import bound_exec

__all__ = ["ServerError", "ServerProcess", "answers", "listens"]

_READY_S = 60.0  # the slowest server, on a machine that runs other tests
_PROBE_S = 2.0
_LOG_LINES = 10


class ServerError(HeronError):
    """A server for tests does not start."""


class ServerProcess:
    """A server with a log file, which can be ended and restarted. Start it from the main thread, and end it."""

    def __init__(self, command: Sequence[str], log: Path, ready: Callable[[], bool], ready_s: float = _READY_S) -> None:
        """`ready` checks whether the server answers; it is called every 10 ms until it returns True.

        Within `ready_s` it has to.
        """
        self._command = command
        self._log = log
        self._ready = ready
        self._ready_s = ready_s
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process id while it runs, else 0."""
        return self._process.pid if self._process else 0

    def start(self) -> None:
        """Start the server and return when it answers; a running server stays.

        Raises:
            ServerError: when it ends, or does not answer in time; the error has the end of its log.
        """
        if self._process is not None:
            return
        bound = [sys.executable, bound_exec.__file__, *self._command]
        with self._log.open("ab") as log:
            self._process = spawn(bound, stdout=log)
        try:
            wait_until(self._answers_or_ended, self._ready_s, "the server answers")
        except AssertionError as error:
            self.kill()
            raise ServerError(self._story("does not answer")) from error
        # Another process may have the port and answer instead.
        if self._process.poll() is not None:
            self._process = None
            raise ServerError(self._story("ended"))

    def kill(self) -> None:
        """End it with SIGKILL and wait for its end; idempotent."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End it with SIGTERM, as an operator would, and wait for its end; idempotent."""
        self._end(signal.SIGTERM)

    def _end(self, sent: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(sent)
            self._process.wait(_READY_S)
            self._process = None

    def _answers_or_ended(self) -> bool:
        return self._process is None or self._process.poll() is not None or self._ready()

    def _story(self, what: str) -> str:
        lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()[-_LOG_LINES:]
        return f"{self._command[0]} {what}; its log {self._log} ends:\n" + "\n".join(lines)


def listens(port: int) -> bool:
    """Return whether a process accepts connections at a port of the loopback address."""
    try:
        socket.create_connection(("127.0.0.1", port), _PROBE_S).close()
    except OSError:
        return False
    return True


def answers(url: str) -> bool:
    """Return whether a GET of an http URL succeeds."""
    try:
        with urllib.request.urlopen(url, timeout=_PROBE_S):  # noqa: S310  # the URL is the fixture's own
            return True
    except (urllib.error.URLError, OSError):
        return False
