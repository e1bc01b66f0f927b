"""What the server knows of one connection."""

from __future__ import annotations

import fcntl
import selectors
import socket
import struct
import termios
from collections import deque

from heron_connector_scribe.batch import Fate
from heron_connector_scribe.thrift_frames import Call

__all__ = ["ClientCall", "Connection"]

HEAD_BYTES = 256
"""What is kept of a call that is not: enough for the name of the method and its number."""

_LENGTH_BYTES = 4
_AHEAD_BYTES = 4096  # received behind a call that waits; then the client has to wait too
_UNREAD_BYTES = 16_384
_RECEIVE_BYTES = 262_144
_UNCONFIRMED = 64

_i32 = struct.Struct(">i").unpack_from


class ClientCall:
    """A call of ``Log`` that waits for its answer, or has it. A `Caller`.

    Attributes:
        connection: None when the call has its answer, or cannot have it any more: batches are remembered for longer.
    """

    __slots__ = ("call", "connection", "fate")

    def __init__(self, connection: Connection, call: Call) -> None:
        self.connection: Connection | None = connection
        self.call = call
        self.fate = Fate.WAITING


class Connection:
    """Bytes of a client become frames. One call at a time waits for its answer; the next ones wait in the buffer.

    Attributes:
        waiting: the call that waits for its answer.
        received: the bytes that are not taken yet.
        begun_s: when the frame at hand began, if it is not complete.
        active_s: when the client has sent something, or had an answer.
    """

    def __init__(self, sock: socket.socket, host: str, now_s: float) -> None:
        self.sock, self.host, self.active_s = sock, host, now_s
        self.waiting: ClientCall | None = None
        self.received = bytearray()
        self.begun_s: float | None = None
        self.to_send = bytearray()
        self.interest = 0
        self._missing = 0  # bytes of a frame whose body is not kept
        self._behind = b""
        self._unconfirmed: deque[ClientCall] = deque(maxlen=_UNCONFIRMED)  # more than one only of a client ahead
        self._is_ahead = False

    @property
    def wanted(self) -> int:
        """The events to wait for."""
        reads = self.waiting is None or len(self.received) < _AHEAD_BYTES
        return (selectors.EVENT_READ if reads else 0) | (selectors.EVENT_WRITE if self.to_send else 0)

    @property
    def receives_bytes(self) -> int:
        """How much to receive at once."""
        return _RECEIVE_BYTES if self.waiting is None else _AHEAD_BYTES

    @property
    def is_idle(self) -> bool:
        """Whether nothing of the client is under way."""
        return self.waiting is None and not self.received and not self.to_send

    @property
    def is_unread(self) -> bool:
        """Whether the client does not read its answers."""
        return len(self.to_send) > _UNREAD_BYTES

    def take_in(self, data: bytes) -> bool:
        """Add what was received; returns whether a frame whose body was not kept ends with it."""
        if not self._missing:
            self.received += data
            return False
        passed = min(self._missing, len(data))
        self._missing -= passed
        if self._missing:
            return False
        self._behind = data[passed:]
        return True

    def take_head(self) -> bytes:
        """The begin of the frame whose body was not kept; the next frame follows."""
        head = bytes(self.received[_LENGTH_BYTES:])
        self.received, self._behind = bytearray(self._behind), b""
        return head

    def drop_body(self) -> None:
        """Keep only the head of the frame at hand, which is not complete."""
        size = self.frame_bytes()
        if size is None or len(self.received) <= HEAD_BYTES or self._missing:
            return
        self._missing = _LENGTH_BYTES + size - len(self.received)
        del self.received[HEAD_BYTES:]

    @property
    def drops(self) -> bool:
        """Whether the body of the frame at hand is not kept."""
        return self._missing > 0

    def frame_bytes(self) -> int | None:
        """The length of the next frame, as the client says; None if it is not known yet."""
        return _i32(self.received)[0] if len(self.received) >= _LENGTH_BYTES else None

    def take_frame(self, size: int) -> bytes | None:
        """The next frame, of this length, if it is complete."""
        end = _LENGTH_BYTES + size
        if len(self.received) < end:
            return None
        with memoryview(self.received) as view:
            frame = bytes(view[_LENGTH_BYTES:end])
        del self.received[:end]
        return frame

    def closed(self, *, in_order: bool) -> None:
        """The connection has ended: settles whether the client has its answer, and lets go of the bytes."""
        if self.waiting is not None:
            self.waiting.fate, self.waiting.connection = Fate.GONE, None
            in_order = False
        # A client that closes with an unread answer resets the connection.
        self._settle(Fate.CONFIRMED if in_order and not self.to_send else Fate.GONE)
        self.received, self.to_send, self._behind = bytearray(), bytearray(), b""

    def answers(self, caller: ClientCall) -> None:
        """The answer to a call is sent now."""
        caller.fate, caller.connection = Fate.SENT, None
        self._unconfirmed.append(caller)
        self._is_ahead = bool(self.received) or any(fcntl.ioctl(self.sock, termios.FIONREAD, bytes(4)))

    def continues(self) -> None:
        """The client has sent another call. If it began it behind the last answer, it has all answers."""
        if not self._is_ahead:
            self._settle(Fate.CONFIRMED)

    def _settle(self, fate: Fate) -> None:
        for each in self._unconfirmed:
            each.fate = fate
        self._unconfirmed.clear()
