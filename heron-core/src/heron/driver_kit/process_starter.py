"""Starts child processes, by a fork server where one can do it, else as new interpreters."""

from __future__ import annotations

import logging
import signal
from collections.abc import Mapping, Sequence
from typing import IO, Protocol

from heron.driver_kit.child_processes import spawn
from heron.driver_kit.fork_server import NOTHING, ForkServer, ForkServerError, can_fork, fork_obstacle

__all__ = ["PROCESS_START", "ProcessStarter", "StartedProcess"]

PROCESS_START = "heron.executor.process.start"
"""The setting that says whether processes are forked: ``fork`` or ``exec``."""

_log = logging.getLogger(__name__)


class StartedProcess(Protocol):
    """A child: a `subprocess.Popen` or a `ForkedProcess`."""

    pid: int

    def poll(self) -> int | None: ...
    def wait(self) -> int: ...
    def terminate(self) -> None: ...
    def kill(self) -> None: ...


class ProcessStarter:
    """Starts children from the main thread; `death_signal` is sent to those that call `bind_to_parent` if it ends.

    It has no server before `fork`, and none after the first failure of a server.
    """

    def __init__(
        self, death_signal: signal.Signals = signal.SIGKILL, imports: Mapping[str, Sequence[str]] = NOTHING
    ) -> None:
        """Before a server forks the first process of a module in `imports`, it imports the modules there."""
        self._death_signal = death_signal
        self._imports = imports
        self._server: ForkServer | None = None
        self.obstacle = "no server was asked for"
        """Why there is no server; "" if there is one."""

    def fork(self, shown: str) -> None:
        """Forks the server, unless something prevents it; its command line has `shown`.

        Call it before this process has a second thread, a handler of a signal, a socket or a ZeroMQ context.
        """
        self.obstacle = fork_obstacle()
        if not self.obstacle:
            try:
                self._server = ForkServer.fork(shown, self._death_signal, self._imports)
            except OSError as error:
                self.obstacle = f"the system refuses a fork server: {error.strerror}"

    def start(self, argv: Sequence[str], output: IO[bytes]) -> StartedProcess:
        """Starts a child in a new process group, with stdin closed and its output in the file.

        Raises:
            OSError: when the system refuses.
        """
        if self._server is not None and can_fork(argv):
            try:
                return self._server.start(argv, output)
            except ForkServerError as error:
                _log.warning("processes start as new interpreters from now on: %s", error)
                self._server, self.obstacle = None, str(error)
        return spawn(argv, stdout=output, death_signal=self._death_signal)

    def close(self, reason: str = "it is closed") -> None:
        """Ends the server; the processes that it has started stay. Idempotent."""
        if self._server is not None:
            self._server.close()
            self._server, self.obstacle = None, reason
