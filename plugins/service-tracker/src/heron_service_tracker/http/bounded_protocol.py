"""One connection of a client, within bounds: how many there are, how long a request may take, how much it may send.

uvicorn answers 503 when there are many connections, but accepts them, waits for a request without limit, and reads to
its end what it has refused. Each accepted connection is a file descriptor, which the watches of topologies need too.

A connection that waits for its client is the first to end when there are too many: clients that open connections and
ask nothing cannot keep others out.
"""

from __future__ import annotations

import asyncio
import operator
import re
from collections.abc import Collection

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from heron_service_tracker.paths.problems import problem_response

__all__ = ["MOST_HEAD_BYTES", "BoundedProtocol"]

MOST_HEAD_BYTES = 16 * 1024  # the line and the headers of a request

_REQUEST_S = 5.0  # from the connection, or the first byte of a further request, to the last byte of the request
_SPARE_CONNECTIONS = 50  # above `limit_concurrency`: they are answered 503, and further ones are closed
_SHARE = 2  # an address has at most this part of `limit_concurrency`: a half
_MOST_UNREAD_BYTES = 2 << 20  # of a request that was answered before its end; the client may still read the answer
_WAITING = frozenset({h11.IDLE, h11.SEND_BODY})  # the client has not sent all of its request
_END_OF_HEAD = re.compile(rb"\n\r?\n")


class BoundedProtocol(H11Protocol):
    """Ends a connection that exceeds a bound. uvicorn makes one for each connection, in its event loop."""

    _deadline: asyncio.TimerHandle | None = None
    _waits_since_s: float | None = None
    """Since when the server waits for this client; None while it works on a request."""
    _unread_bytes = 0
    _is_refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Begin to wait for a request, or close the connection when there are too many."""
        super().connection_made(transport)
        self._head = bytearray()
        if not self._has_place():
            self._end()
            return
        self._wait_or_not()

    def data_received(self, data: bytes) -> None:
        """Take a part of a request."""
        if self._is_refused or (self.conn.their_state is h11.SEND_BODY and self.cycle.response_complete):
            self._unread_bytes += len(data)
            if self._is_refused or self._unread_bytes > _MOST_UNREAD_BYTES:
                if self._unread_bytes > _MOST_UNREAD_BYTES:
                    self.transport.abort()
                return
        if self.conn.their_state is h11.IDLE and not self._head:
            self._cancel()  # the time of a further request begins with its first byte
        if self.conn.their_state is h11.IDLE and self._has_long_head(data):
            has_line = b"\n" in self._head[:MOST_HEAD_BYTES]
            self._refuse(431 if has_line else 414, f"the line and the headers have at most {MOST_HEAD_BYTES} bytes")
            return
        super().data_received(data)
        self._wait_or_not()

    def on_response_complete(self) -> None:
        """Wait for a further request."""
        super().on_response_complete()
        self._wait_or_not()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the deadline."""
        super().connection_lost(exc)
        self._cancel()

    def send_400_response(self, msg: str) -> None:
        """Answer bytes that are no HTTP request with an error; uvicorn calls it."""
        self._refuse(400, msg)

    def _has_place(self) -> bool:
        """Whether the connection may stay; ends others that only wait."""
        most = self.limit_concurrency
        if most is None:
            return True
        address, share = self.client and self.client[0], most // _SHARE
        present = [each for each in self.connections if isinstance(each, BoundedProtocol)]
        same = [each for each in present if address and each.client and each.client[0] == address]
        if not self._make_place(same, share):
            detail = f"your address has {share} connections in use; ask again later"
            self.app = problem_response(503, detail, {"connection": "close"})
            return len(same) <= share + _SPARE_CONNECTIONS and len(present) <= most + _SPARE_CONNECTIONS
        if not self._make_place(present, most - 1):
            return len(present) <= most + _SPARE_CONNECTIONS  # uvicorn answers 503 from `most` on
        return True

    def _make_place(self, connections: Collection[BoundedProtocol], most: int) -> bool:
        """End those that have waited longest for their clients, until `most` are left.

        If too few wait, this connection has no place: it returns False, and ends none.
        """
        surplus = len(connections) - most
        if surplus <= 0:
            return True
        waiting = [(each, since_s) for each in connections if (since_s := each._waits_since_s) is not None]
        waiting.sort(key=operator.itemgetter(1))
        if surplus > len(waiting):
            return False
        for each, _ in waiting[:surplus]:
            each._end()
        return True

    def _end(self) -> None:
        self.connections.discard(self)  # the loop calls `connection_lost` later
        self.transport.abort()

    def _has_long_head(self, data: bytes) -> bool:
        self._head += data[: MOST_HEAD_BYTES + 1 - len(self._head)]
        return len(self._head) > MOST_HEAD_BYTES and _END_OF_HEAD.search(self._head) is None

    def _refuse(self, status: int, detail: str) -> None:
        """Answer what cannot be read. The client gets the answer only if the rest of its request is taken."""
        if self.conn.our_state not in {h11.IDLE, h11.SEND_RESPONSE}:
            self.transport.abort()
            return
        is_head = self.conn.our_state is h11.SEND_RESPONSE and self.scope["method"] == "HEAD"  # h11 refuses its body
        self._is_refused = True
        if self.cycle is not None:
            self.cycle.disconnected = True  # the application may be about to answer
        answer = problem_response(status, detail, {"connection": "close"})
        output = self.conn.send(h11.Response(status_code=status, headers=answer.raw_headers))
        if not is_head:
            output += self.conn.send(h11.Data(data=bytes(answer.body)))
        output += self.conn.send(h11.EndOfMessage())
        self.transport.write(output)
        self.transport.write_eof()
        self._begin_deadline()

    def _wait_or_not(self) -> None:
        if self.conn.their_state is not h11.IDLE:
            self._head.clear()
        if self.conn.their_state not in _WAITING:
            self._cancel()
        else:
            self._begin_deadline()

    def _begin_deadline(self) -> None:
        if self._deadline is None:
            self._waits_since_s = self.loop.time()
            self._deadline = self.loop.call_later(_REQUEST_S, self.transport.abort)

    def _cancel(self) -> None:
        self._waits_since_s = None
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
