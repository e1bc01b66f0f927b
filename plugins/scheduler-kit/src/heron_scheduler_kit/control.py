"""The protocol between a command and a supervisor: one JSON line each way, over a unix socket in a private folder.

Requests are ``{"op": "status" | "kill" | "restart" | "update", …}``; an answer has ``error`` or the result.
"""

from __future__ import annotations

import json
import selectors
import socket
from collections.abc import Callable

from heron.errors import HeronError, SchedulerError
from heron_scheduler_kit.job_folder import JobFolder

__all__ = ["ControlServer", "Message", "Reply", "request"]

Message = dict[str, object]
Reply = Callable[[Message], None]
Handler = Callable[[Message, Reply], None]

_REQUEST_BYTES = 64 * 1024 * 1024  # an update that adds a thousand containers has about 10 MB
_SEND_TIMEOUT_S = 1.0  # a command reads its answer at once; the supervisor does not wait longer


class ControlServer:
    """The supervisor's side of the protocol; its main loop makes all calls."""

    def __init__(self, folder: JobFolder, selector: selectors.BaseSelector, handle: Handler) -> None:
        self._selector = selector
        self._handle = handle
        self._received: dict[socket.socket, bytearray] = {}
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with folder.socket_path() as path:
            self._listener.bind(path)
        self._listener.listen(16)
        self._listener.setblocking(False)
        selector.register(self._listener, selectors.EVENT_READ, self._accept)

    def close(self) -> None:
        """Close all connections; commands that wait for an answer see the end of the stream."""
        for connection in list(self._received):
            self._hang_up(connection)
        self._selector.unregister(self._listener)
        self._listener.close()

    def _accept(self) -> None:
        try:
            connection, _address = self._listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        connection.settimeout(_SEND_TIMEOUT_S)
        self._received[connection] = bytearray()
        self._selector.register(connection, selectors.EVENT_READ, lambda: self._receive(connection))

    def _receive(self, connection: socket.socket) -> None:
        received = self._received[connection]
        try:
            chunk = connection.recv(1 << 18)
        except OSError:
            chunk = b""
        received += chunk
        if not chunk or len(received) > _REQUEST_BYTES:
            self._hang_up(connection)
        elif received.endswith(b"\n"):
            line = bytes(received)
            received.clear()
            self._answer(connection, line)

    def _answer(self, connection: socket.socket, line: bytes) -> None:
        def reply(answer: Message) -> None:
            try:
                connection.sendall(json.dumps(answer).encode() + b"\n")
            except OSError:
                self._hang_up(connection)

        try:
            message = json.loads(line)
            if not isinstance(message, dict):
                reply({"error": "a request is a JSON object"})
                return
            self._handle(message, reply)
        except HeronError as error:
            reply({"error": str(error)})
        except (ValueError, KeyError, TypeError, OSError) as error:
            reply({"error": f"the request cannot be carried out: {type(error).__name__}: {error}"})

    def _hang_up(self, connection: socket.socket) -> None:
        if self._received.pop(connection, None) is not None:
            self._selector.unregister(connection)
            connection.close()


def request(folder: JobFolder, message: Message, timeout_s: float) -> Message:
    """Send a request to the supervisor and return its answer.

    Raises:
        SchedulerError: when the supervisor refuses; has its message.
        OSError: when there is no supervisor, or it does not answer in time, or it ends meanwhile.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(timeout_s)
        with folder.socket_path() as path:
            connection.connect(path)
        connection.sendall(json.dumps(message).encode() + b"\n")
        received = bytearray()
        while not received.endswith(b"\n"):
            chunk = connection.recv(1 << 18)
            if not chunk:
                raise ConnectionResetError
            received += chunk
    answer: Message = json.loads(received)
    if error := answer.get("error"):
        raise SchedulerError(str(error))
    return answer
