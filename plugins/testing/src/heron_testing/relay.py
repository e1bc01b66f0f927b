"""A TCP relay between a driver and its server; a test can break, silence and delay its connections."""

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
_LATE_CHUNKS = 1024  # the largest number of delayed chunks in each direction

Through = Callable[[socket.socket], socket.socket]
"""Opens the connection to the target for an accepted connection."""


class Relay:
    """Passes the bytes of TCP connections to a target and back. Close it at the end of a test.

    A test changes these attributes at any time:

    - `swallows`: all bytes in both directions are lost, and connections stay open, as with a pulled cable.
    - `swallows_answers`: the bytes from the target are lost.
    - `refuses`: new connections end at once.
    - `delay_s`: bytes arrive that many seconds later.
    """

    def __init__(
        self, target: tuple[str, int] | Through, *, listener: socket.socket | None = None, delay_s: float = 0.0
    ) -> None:
        """Listen on a free port of 127.0.0.1, or on `listener`, and start a thread.

        `target` is host and port, or a function that opens the connection to the target. `delay_s` is 0 or more.
        """
        self.swallows = False
        self.swallows_answers = False
        self.refuses = False
        self.accepted = 0
        """The number of accepted connections; a new one shows that a client noticed a broken one."""
        self.swallowed_bytes = 0
        """The number of lost bytes, in both directions."""
        self.delay_s = delay_s
        self._through = target if callable(target) else lambda _client: socket.create_connection(target)
        self._listener = listener or socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    @property
    def address(self) -> tuple[str, int]:
        """Host and port for clients."""
        host, port = self._listener.getsockname()
        return host, port

    def cut(self) -> None:
        """Break every connection; clients can connect again."""
        for each in self._open:
            _shut(each)

    def close(self) -> None:
        """Stop listening, break every connection, and wait for the threads, at most 10 s for each."""
        _shut(self._listener)
        self.cut()
        self._threads[0].join(_JOIN_S)  # the accepting thread
        self.cut()  # connections that were accepted in the meantime
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
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # each chunk may be a complete message
            self._start(functools.partial(self._pass, client, server, answers=False))
            self._start(functools.partial(self._pass, server, client, answers=True))

    def _pass(self, source: socket.socket, sink: socket.socket, *, answers: bool) -> None:
        late: deque[tuple[float, bytes]] = deque()
        ended = False
        with contextlib.suppress(OSError, ValueError):  # ValueError: the socket was closed in the meantime
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
