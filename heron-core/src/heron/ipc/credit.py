"""Byte credit, the two halves of it, pure.

Both sides count all bytes since the session began, so that a credit message can be late or doubled but never wrong. A
sender has at most a window of bytes under way that the receiver has not released; one frame larger than the window is
let through when nothing is under way, so that no size can block a link for good.
"""

from __future__ import annotations

from heron.errors import RemoteProtocolError

__all__ = ["CreditGrant", "CreditWindow"]


class CreditWindow:
    """The sender's half."""

    __slots__ = ("_window_bytes", "released_bytes", "sent_bytes")

    def __init__(self, window_bytes: int) -> None:
        self._window_bytes = window_bytes
        self.sent_bytes = 0
        self.released_bytes = 0

    def allows(self, size_bytes: int) -> bool:
        """Whether a frame of this size may be sent now."""
        under_way = self.sent_bytes - self.released_bytes
        return under_way == 0 or under_way + size_bytes <= self._window_bytes

    def spend(self, size_bytes: int) -> None:
        """A frame of this size was sent."""
        self.sent_bytes += size_bytes

    def release(self, released_bytes: int) -> None:
        """The receiver has released so much in all.

        Raises:
            RemoteProtocolError: when that is more than was sent.
        """
        if released_bytes > self.sent_bytes:
            msg = f"peer releases {released_bytes} bytes, only {self.sent_bytes} bytes were sent"
            raise RemoteProtocolError(msg)
        self.released_bytes = max(self.released_bytes, released_bytes)


class CreditGrant:
    """The receiver's half: what arrived and what of it is released, reported when it is worth a message."""

    __slots__ = ("received_bytes", "released_bytes", "reported_bytes")

    def __init__(self) -> None:
        self.received_bytes = 0
        self.released_bytes = 0
        self.reported_bytes = 0

    def receive(self, size_bytes: int) -> None:
        """A frame of this size arrived."""
        self.received_bytes += size_bytes

    def release(self, size_bytes: int) -> None:
        """So much of it no longer takes room here."""
        self.released_bytes += size_bytes

    def due(self) -> int | None:
        """All bytes released, when the sender does not know them yet; it counts as told."""
        if self.released_bytes == self.reported_bytes:
            return None
        self.reported_bytes = self.released_bytes
        return self.released_bytes
