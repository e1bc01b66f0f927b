"""JSON messages, one a line, over a stream socket: the messages between supervisor and driver."""

from __future__ import annotations

import contextlib
import json
import socket

from heron_scheduler_kit.control import Message

__all__ = ["MessageStream"]

_SEND_TIMEOUT_S = 5.0  # a peer that does not read for that long hangs


class MessageStream:
    """One end of the connection; used from one thread. `closed` becomes true when the connection has ended."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._received = bytearray()
        self.closed = False

    def fileno(self) -> int:
        return self._connection.fileno()

    def send(self, message: Message) -> None:
        """Send the message; close the stream if the peer does not read it within 5 s."""
        if self.closed:
            return
        try:
            self._connection.settimeout(_SEND_TIMEOUT_S)
            self._connection.sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            self.closed = True

    def receive(self) -> list[Message]:
        """Return the messages that have arrived, without waiting."""
        self._connection.settimeout(0.0)
        with contextlib.suppress(BlockingIOError):
            while not self.closed:
                try:
                    chunk = self._connection.recv(1 << 18)
                except ConnectionError:
                    chunk = b""
                if not chunk:
                    self.closed = True
                self._received += chunk
        *lines, rest = self._received.split(b"\n")
        self._received = bytearray(rest)
        return [json.loads(line) for line in lines]

    def close(self) -> None:
        """Idempotent."""
        self.closed = True
        self._connection.close()
