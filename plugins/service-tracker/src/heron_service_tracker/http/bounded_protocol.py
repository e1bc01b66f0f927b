"""One connection of a client, within bounds: how many there are, how long a request may take, how much it may send.

uvicorn answers 503 when there are many connections, but accepts them, waits for a request without limit, and reads to
its end what it has refused. Each accepted connection is a file descriptor, which the watches of topologies need too.
"""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["BoundedProtocol"]

_REQUEST_S = 10.0  # from the connection, or the first byte of a further request, to the last byte of the request
_SPARE_CONNECTIONS = 50  # above `limit_concurrency`: they are answered 503, and further ones are closed
_MOST_UNREAD_BYTES = 1 << 20  # of a request that was answered before its end; the client may still read the answer
_WAITING = frozenset({h11.IDLE, h11.SEND_BODY})  # the client has not sent all of its request


class BoundedProtocol(H11Protocol):
    """Ends a connection that exceeds a bound. uvicorn makes one for each connection, in its event loop."""

    _deadline: asyncio.TimerHandle | None = None
    _unread_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Begin to wait for a request, or close the connection when there are too many."""
        super().connection_made(transport)
        most = self.limit_concurrency
        if most is not None and len(self.connections) > most + _SPARE_CONNECTIONS:
            transport.abort()
            return
        self._wait_or_not()

    def data_received(self, data: bytes) -> None:
        """Take a part of a request."""
        if self.conn.their_state is h11.SEND_BODY and self.cycle.response_complete:
            self._unread_bytes += len(data)
            if self._unread_bytes > _MOST_UNREAD_BYTES:
                self.transport.abort()
                return
        super().data_received(data)
        self._wait_or_not()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the deadline."""
        super().connection_lost(exc)
        self._cancel()

    def _wait_or_not(self) -> None:
        if self.conn.their_state not in _WAITING:
            self._cancel()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(_REQUEST_S, self.transport.abort)

    def _cancel(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
