"""The connection to carbon.

Carbon sends no answers. A client can only see whether the connection exists.
"""

from __future__ import annotations

import contextlib
import socket

from heron.errors import SinkError

__all__ = ["Connection"]

_TIMEOUT_S = 4.0  # once to connect and once to send, because a flush may block for 10 s


class Connection:
    """Opened by the first `send`, and by the next `send` after an error."""

    def __init__(self, host: str, port: int) -> None:
        self._address = (host, port)
        self._socket: socket.socket | None = None

    def open(self, timeout_s: float = _TIMEOUT_S) -> socket.socket:
        """Return the connection; open it first if there is none.

        Raises:
            SinkError: when the connection is refused, or does not open within `timeout_s`.
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
        """Whether the connection is open and carbon has not closed it."""
        if self._socket is not None and _closed(self._socket):
            self.close()
        return self._socket is not None

    def closes_within(self, timeout_s: float) -> bool:
        """Whether carbon closes the connection within this time."""
        connected = self.open(timeout_s)
        connected.settimeout(timeout_s)
        try:
            return connected.recv(1) == b""
        except TimeoutError:
            return False
        except OSError:
            return True

    def send(self, data: bytes) -> None:
        """Pass the bytes to the operating system.

        Raises:
            SinkError: when there is no connection, or carbon does not read for 4 s.
        """
        connected = self.open()
        try:
            connected.sendall(data)
        except OSError as error:
            self.close()
            host, port = self._address
            msg = f"carbon at {host}:{port} does not accept data: {error}; see the log of carbon"
            raise SinkError(msg) from error

    def close(self) -> None:
        """Close the connection; sent bytes still arrive. Idempotent."""
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_WR)
            self._socket.close()
            self._socket = None


def _closed(connected: socket.socket) -> bool:
    """Carbon never sends data, so a read returns only when carbon has closed the connection."""
    connected.settimeout(0.0)
    try:
        return connected.recv(1) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True
    finally:
        connected.settimeout(_TIMEOUT_S)
