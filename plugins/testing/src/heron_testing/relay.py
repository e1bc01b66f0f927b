"""A network between two processes that a test can break."""

from __future__ import annotations

import contextlib
import functools
import select
import socket
import threading
from collections import deque
from collections.abc import Callable

from heron.clock import monotonic_s

__all__ = ["Relay"]

_CHUNK_BYTES = 65536
_JOIN_S = 10.0
_LATE_CHUNKS = 1024  # as many are on their way at most, where there is a delay

Through = Callable[[socket.socket], socket.socket]
"""Makes the connection to the target for one that has come."""


class Relay:
    """Passes the bytes of TCP connections on to a target, until it is told otherwise. Close it at the end of a test.

    While `swallows` is set, everything that comes is lost, in both directions, and connections stay open: what a
    cable that was pulled looks like. While `swallows_answers` is, only what the target says is lost. While `refuses`
    is set, new connections end at once. Everything arrives `delay_s` later than it was said.
    """

    def __init__(
        self, target: tuple[str, int] | Through, *, listener: socket.socket | None = None, delay_s: float = 0.0
    ) -> None:
        """Listens at a free port of this machine, or takes over `listener`; `target` is host and port."""
        self.swallows = False
        self.swallows_answers = False
        self.refuses = False
        self.accepted = 0
        """Connections so far: who reconnects has noticed that a former one broke."""
        self.swallowed_bytes = 0
        """What was lost so far, in both directions."""
        self.delay_s = delay_s
        self._through = target if callable(target) else lambda _client: socket.create_connection(target)
        self._listener = listener or socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    @property
    def address(self) -> tuple[str, int]:
        """Host and port to connect to."""
        host, port = self._listener.getsockname()
        return host, port

    def cut(self) -> None:
        """Breaks every connection; new ones can be made."""
        for each in self._open:
            _shut(each)

    def close(self) -> None:
        """Breaks every connection for good and returns when its threads have ended."""
        _shut(self._listener)
        self.cut()
        self._threads[0].join(_JOIN_S)  # the one that accepts
        self.cut()  # what was accepted meanwhile
        for thread in self._threads:
            thread.join(_JOIN_S)
        for each in (self._listener, *self._open):
            each.close()

    def _start(self, work: Callable[[], None]) -> None:
        self._threads.append(threading.Thread(target=work))
        self._threads[-1].start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self._open.append(client)
            self.accepted += 1
            if self.refuses:
                _shut(client)
                continue
            try:
                server = self._through(client)
            except OSError:
                _shut(client)
                continue
            self._open.append(server)
            for each in (client, server):
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # what is passed on was a whole message
            self._start(functools.partial(self._pass, client, server, answers=False))
            self._start(functools.partial(self._pass, server, client, answers=True))

    def _pass(self, source: socket.socket, sink: socket.socket, *, answers: bool) -> None:
        late: deque[tuple[float, bytes]] = deque()
        ended = False
        with contextlib.suppress(OSError, ValueError):  # ValueError: it was closed meanwhile
            while late or not ended:
                wait_s = max(0.0, late[0][0] - monotonic_s()) if late else None
                reads = [] if ended or len(late) >= _LATE_CHUNKS else [source]
                if select.select(reads, [], [], wait_s)[0]:
                    data = source.recv(_CHUNK_BYTES)
                    ended = not data
                    late.append((monotonic_s() + self.delay_s, data))
                while late and late[0][0] <= monotonic_s():
                    data = late.popleft()[1]
                    if self.swallows or (answers and self.swallows_answers):
                        self.swallowed_bytes += len(data)
                    else:
                        sink.sendall(data)
        _shut(sink)


def _shut(each: socket.socket) -> None:
    with contextlib.suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
