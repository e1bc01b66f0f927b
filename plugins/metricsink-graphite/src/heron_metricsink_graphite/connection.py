"""The connection to carbon, which answers nothing: what can be known is that it is there."""

from __future__ import annotations

import contextlib
import socket

from heron.errors import SinkError

__all__ = ["Connection"]

_TIMEOUT_S = 4.0  # to connect, and again to send: a flush may block for 10 s


class Connection:
    """Made by the first `send`, and anew by the next one after an error."""

    def __init__(self, host: str, port: int) -> None:
        self._address = (host, port)
        self._socket: socket.socket | None = None

    def open(self, timeout_s: float = _TIMEOUT_S) -> socket.socket:
        """The connection, made if there is none.

        Raises:
            SinkError: when nobody listens there, or not within `timeout_s`.
        """
        if self._socket is None:
            host, port = self._address
            try:
                self._socket = socket.create_connection(self._address, timeout_s)
            except OSError as error:
                msg = f"carbon at {host}:{port} does not answer: {error}; is it running, and are host and port right?"
                raise SinkError(msg) from error
            self._socket.settimeout(_TIMEOUT_S)
        return self._socket

    def alive(self) -> bool:
        """Whether there is a connection and the other side has not ended it."""
        if self._socket is not None and _ended(self._socket):
            self.close()
        return self._socket is not None

    def ends_within(self, timeout_s: float) -> bool:
        """Whether the other side ends it in that time."""
        connected = self.open(timeout_s)
        connected.settimeout(timeout_s)
        try:
            return connected.recv(1) == b""
        except TimeoutError:
            return False
        except OSError:
            return True

    def send(self, data: bytes) -> None:
        """Hands the bytes to the operating system.

        Raises:
            SinkError: when there is no connection, or carbon reads nothing for seconds.
        """
        connected = self.open()
        try:
            connected.sendall(data)
        except OSError as error:
            self.close()
            host, port = self._address
            msg = f"carbon at {host}:{port} has taken nothing: {error}; look at its log"
            raise SinkError(msg) from error

    def close(self) -> None:
        """Ends it; what was sent still arrives. Idempotent."""
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_WR)
            self._socket.close()
            self._socket = None


def _ended(connected: socket.socket) -> bool:
    """Carbon never says anything: what can be read is the end."""
    connected.settimeout(0.0)
    try:
        return connected.recv(1) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True
    finally:
        connected.settimeout(_TIMEOUT_S)
