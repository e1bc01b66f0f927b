"""Who is let in at a socket that listens on the network, and how many were not.

Without a handler of the ZeroMQ Authentication Protocol (RFC 27) CURVE lets in anybody who has the server's public key.
The gate is that handler, for the one such socket of its context; it answers on the event loop of the socket's owner.
It is bound before the socket is, and the socket is told to refuse everybody while there is no handler.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

import zmq
from zmq.utils import z85

from heron.ipc.handshakes import Handshakes
from heron.ipc.keys import ServerKeys, Speaker
from heron.ipc.socket import HANDSHAKE_S

__all__ = ["DOMAIN", "Gate"]

DOMAIN = b"heron"

_ENDPOINT = "inproc://zeromq.zap.01"
_MONITOR = "inproc://gate.monitor"
_VERSION = b"1.0"
_EVENT = struct.Struct("=HI")  # event and value: the first part of what a monitor says
_MONITORED = (
    zmq.EVENT_ACCEPTED
    | zmq.EVENT_DISCONNECTED
    | zmq.EVENT_HANDSHAKE_SUCCEEDED
    | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
    | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
    | zmq.EVENT_HANDSHAKE_FAILED_AUTH
)


class Gate:
    """Answers for each connection whether its key is known, and counts what becomes of connections."""

    def __init__(self, socket: zmq.Socket[bytes], keys: ServerKeys, now_s: Callable[[], float]) -> None:
        """For a socket that is not bound yet."""
        context = socket.context
        self._known = {z85.decode(public): speaker for public, speaker in keys.clients.items()}
        self._now_s = now_s
        self.handshakes = Handshakes(HANDSHAKE_S)
        self.requests: zmq.Socket[bytes] = context.socket(zmq.REP)
        self.requests.setsockopt(zmq.LINGER, 0)
        self.requests.bind(_ENDPOINT)
        # Unlimited: the library would wait, with all its connections, for a monitor that is full.
        self.events: zmq.Socket[bytes] = context.socket(zmq.PAIR)
        self.events.setsockopt(zmq.RCVHWM, 0)
        self.events.setsockopt(zmq.LINGER, 0)
        socket.monitor(_MONITOR, _MONITORED)
        self.events.connect(_MONITOR)

    def answer(self) -> None:
        """Answers every request that has come."""
        while True:
            try:
                request = self.requests.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            self.requests.send_multipart(self._verdict(request))

    def count(self) -> None:
        """Takes every event that has come."""
        while True:
            try:
                parts = self.events.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            self._count(*_EVENT.unpack(parts[0]))

    def refused(self) -> dict[str, int]:
        """How many connections did not get in so far, by reason."""
        self.count()
        return self.handshakes.refused(self._now_s())

    def close(self) -> None:
        """Closes its sockets; idempotent."""
        self.requests.close()
        self.events.close()

    def _verdict(self, request: list[bytes]) -> list[bytes]:
        # version, request id, domain, address, routing id, mechanism, credentials
        request_id = request[1] if len(request) > 1 else b""
        speaker: Speaker | None = None
        if len(request) == 7 and request[0] == _VERSION and request[2] == DOMAIN and request[5] == b"CURVE":
            speaker = self._known.get(request[6])
        if speaker is None:
            return [_VERSION, request_id, b"400", b"unknown key", b"", b""]
        return [_VERSION, request_id, b"200", b"OK", speaker.value.encode("ascii"), b""]

    def _count(self, event: int, value: int) -> None:
        handshakes = self.handshakes
        if event == zmq.EVENT_ACCEPTED:
            handshakes.accepted(value, self._now_s())
        elif event == zmq.EVENT_DISCONNECTED:
            handshakes.disconnected(value)
        elif event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
            handshakes.succeeded()
        elif event == zmq.EVENT_HANDSHAKE_FAILED_AUTH:
            handshakes.failed("unknown-key")
        elif event == zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL:
            handshakes.failed("protocol")
        else:
            handshakes.failed("unfinished")
