"""The server of one collector: a thread that has its sockets.

The thread only parses and counts. What becomes of the messages is decided by the thread of the task, which takes them
from the `Intake` and gives the answers. So calls are refused or put off while the topology throttles its spouts.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import math
import resource
import selectors
import socket
import threading
from collections import Counter
from collections.abc import Iterable

from heron.clock import Clock, SystemClock
from heron.errors import ConnectorError
from heron_connector_scribe.announcement import Announcement
from heron_connector_scribe.connection import Connection
from heron_connector_scribe.connections import Connections
from heron_connector_scribe.intake import Intake
from heron_connector_scribe.log_calls import LogCalls
from heron_connector_scribe.refusals import Refusal, ServiceCounts
from heron_connector_scribe.service_options import ServiceOptions
from heron_connector_scribe.thrift_frames import Parse, log_entries

__all__ = ["LogServer"]

_log = logging.getLogger(__name__)

_BACKLOG = 1024  # connections that the kernel holds while this thread is busy
_SWEEP_S = 0.1
_ACCEPTS = 128  # of connections in a row; then others have their turn
_OTHER_FILES = 128  # descriptors that the rest of the process needs
_IN_USE_S = 10.0  # so long the port may belong to the process before, or to the task that is moving away


class LogServer:
    """Listens from `start` to `close`. See the module.

    Attributes:
        intake: where the task takes batches and gives answers.
        counts: messages, calls and refusals since the start; only the server's thread changes them.
        port: where it listens; 0 before it does.
    """

    def __init__(
        self,
        options: ServiceOptions,
        index: int,
        name: str,
        mode: str,
        clock: Clock | None = None,
        parse: Parse = log_entries,
    ) -> None:
        self.options = options
        self.port = 0
        self._wanted_port = options.port_of(index)
        self._name = name
        self._clock = clock or SystemClock()
        self._announcement = Announcement(options, index)
        self._woken, self._waker = socket.socketpair()
        for each in (self._woken, self._waker):
            each.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._refusals = ServiceCounts(name, self._clock)
        self.counts: Counter[str] = self._refusals.totals
        self.intake = Intake(options.pending_bytes, self._wake, self._clock.monotonic_s)
        self._calls = LogCalls(options, name, mode, self.intake, self._refusals, self._clock, parse)
        self._connections = Connections(options, self._selector, self._calls, self.intake, self._refusals, self._clock)
        self._most_connections = max(1, min(options.connections, _descriptors() - _OTHER_FILES))
        self._listener: socket.socket | None = None
        self._accepts = False
        self._problem = self._told = ""
        self._sweeps_s = self._began_s = self._clock.monotonic_s()
        self._closing = False
        self._error: Exception | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Listen, from another thread. A port that is in use is tried again. Another call only looks at the thread.

        Raises:
            ConnectorError: when the thread has ended by an error. The next call listens again.
        """
        if self._thread is not None and self._error is not None:
            self._thread.join()
            error, self._thread, self._error, self.port = self._error, None, None, 0
            msg = (
                f"source {self._name!r} has closed its connections by an error of its own, {error!r}; it listens again"
            )
            raise ConnectorError(msg) from error
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=f"scribe-{self._name}", daemon=True)
            self._thread.start()

    def take_problem(self) -> str:
        """Why it does not listen, once for each reason; else empty."""
        if self._problem == self._told:
            return ""
        self._told = self._problem
        return self._told

    def close(self) -> None:
        """Answer TRY_LATER to what waits, and close all connections. Clients of emitted batches get no answer."""
        self._closing = True
        if self._thread is not None:
            self._wake()
            self._thread.join()
        self._selector.close()
        self._woken.close()
        self._waker.close()

    def _wake(self) -> None:
        with contextlib.suppress(OSError):  # full: it will wake anyway
            self._waker.send(b"\0")

    def _run(self) -> None:
        self._selector.register(self._woken, selectors.EVENT_READ, None)
        try:
            while not self._closing:
                self._round(self._selector.select(_SWEEP_S))
        except Exception as error:
            self._error = error
        finally:
            try:
                self._announcement.remove()
                for connection, reply in self._calls.late(math.inf):
                    self._connections.reply(connection, reply)
            finally:
                self._close_sockets()

    def _close_sockets(self) -> None:
        self._connections.close()
        self._selector.unregister(self._woken)
        if self._listener is not None:
            if self._accepts:
                self._selector.unregister(self._listener)
            self._listener.close()
        self._listener = None

    def _round(self, ready: Iterable[tuple[selectors.SelectorKey, int]]) -> None:
        # Clients that wait come first: one that has gone, and calls again on a new connection, must be known as gone.
        for key, events in sorted(ready, key=_may_call):
            found = key.data
            if isinstance(found, Connection):
                self._connections.serve(found, events)
            elif key.fileobj is self._woken:
                with contextlib.suppress(BlockingIOError):
                    while self._woken.recv(4096):
                        pass
            else:
                self._accept()
        for connection, reply in self._calls.answers():
            self._connections.reply(connection, reply)
        if (now_s := self._clock.monotonic_s()) >= self._sweeps_s:
            self._sweeps_s = now_s + _SWEEP_S
            self._sweep(now_s)

    def _sweep(self, now_s: float) -> None:
        """What time brings: a port that is free by now, calls that have waited too long."""
        if self._listener is None:
            self._listen(now_s)
        elif not self._accepts:
            self._selector.register(self._listener, selectors.EVENT_READ, None)
            self._accepts = True
        for connection, reply in self._calls.late(now_s - self.options.queue_s):
            self._connections.reply(connection, reply)
        self._connections.close_stalled(now_s)

    def _listen(self, now_s: float) -> None:
        listener = socket.socket(socket.AF_INET6 if ":" in self.options.host else socket.AF_INET)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((self.options.host, self._wanted_port))
            listener.listen(_BACKLOG)
            listener.setblocking(False)
            port: int = listener.getsockname()[1]
            self._announcement.write(port)
        except OSError as error:
            listener.close()
            if error.errno != errno.EADDRINUSE or now_s - self._began_s > _IN_USE_S:
                place = f"{self.options.host}:{self._wanted_port}"
                self._problem = (
                    f"source {self._name!r} cannot listen at {place}: {error}; it tries again. Give the task another "
                    "address, or end the other process; a folder for `announce` must be writable"
                )
            return
        self._listener, self.port, self._problem = listener, port, ""
        self._selector.register(listener, selectors.EVENT_READ, None)
        self._accepts = True
        _log.info("source %r listens at %s:%d", self._name, self.options.host, port)

    def _accept(self) -> None:
        assert self._listener is not None  # noqa: S101  # it is ready
        for _ in range(_ACCEPTS):
            try:
                sock, address = self._listener.accept()
            except BlockingIOError:
                return
            except OSError as error:  # no descriptor is left: the next sweep tries again
                self._refusals.refused(Refusal.DESCRIPTORS, f"a connection cannot be accepted: {error}")
                self._selector.unregister(self._listener)
                self._accepts = False
                return
            why = f"there are {self._most_connections} connections, the limit"
            if len(self._connections) >= self._most_connections and not self._connections.close_idle(why):
                sock.close()
                self._refusals.refused(Refusal.CONNECTIONS, why)
            else:
                self._connections.add(sock, str(address[0]))


def _may_call(item: tuple[selectors.SelectorKey, int]) -> bool:
    found = item[0].data
    return not (isinstance(found, Connection) and found.waiting is not None)


def _descriptors() -> int:
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
