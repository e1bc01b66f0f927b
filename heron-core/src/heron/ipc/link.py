"""One data link: sequence numbers and byte credit, for each side. Pure.

A `SendLane` numbers the frames of a session, and a `ReceiveLane` checks the numbers.

Both sides count all bytes since the session started, so a credit message may be late or repeated but is never wrong. A
sender has at most one window of bytes under way that the receiver has not released. A frame larger than the window is
allowed when nothing is under way, so that no frame size can block a link for ever.
"""

from __future__ import annotations

from heron.errors import RemoteProtocolError, Violation
from heron.ipc.frames.frame import FrameKind, frame_header

__all__ = ["CreditGrant", "CreditWindow", "ReceiveLane", "SendLane"]


class CreditWindow:
    """Credit at the sender."""

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
        """Counts a frame that was sent."""
        self.sent_bytes += size_bytes

    def release(self, released_bytes: int) -> None:
        """Takes the total that the receiver has released.

        Raises:
            RemoteProtocolError: when the total is greater than what was sent.
        """
        if released_bytes > self.sent_bytes:
            msg = f"peer releases {released_bytes} bytes, only {self.sent_bytes} bytes were sent"
            raise RemoteProtocolError(msg, Violation.SESSION)
        self.released_bytes = max(self.released_bytes, released_bytes)


class CreditGrant:
    """Credit at the receiver: the bytes that arrived, were released, and were reported to the sender."""

    __slots__ = ("received_bytes", "released_bytes", "reported_bytes")

    def __init__(self) -> None:
        self.received_bytes = 0
        self.released_bytes = 0
        self.reported_bytes = 0

    def receive(self, size_bytes: int) -> None:
        """Counts a frame that arrived."""
        self.received_bytes += size_bytes

    def release(self, size_bytes: int) -> None:
        """Counts bytes that no longer take room here."""
        self.released_bytes += size_bytes

    def due(self) -> int | None:
        """The total released, to send to the sender now; None when the last report is up to date."""
        if self.released_bytes == self.reported_bytes:
            return None
        self.reported_bytes = self.released_bytes
        return self.released_bytes


class SendLane:
    """Numbers the data and ack frames of a session."""

    __slots__ = ("sequence", "session")

    def __init__(self, session: int) -> None:
        self.session = session
        self.sequence = 0

    def header(self, kind: FrameKind, flags: int = 0) -> bytes:
        """The header of the session's next data or ack frame."""
        self.sequence += 1
        return frame_header(kind, self.session, self.sequence, flags)


class ReceiveLane:
    """Checks session and sequence of the frames that arrive."""

    __slots__ = ("expected", "session")

    def __init__(self, session: int) -> None:
        self.session = session
        self.expected = 1

    @property
    def taken(self) -> int:
        """The number of frames that arrived or are known as lost."""
        return self.expected - 1

    def take_back(self) -> None:
        """The last accepted frame breaks the protocol: it does not count as taken."""
        self.expected -= 1

    def accept(self, session: int, sequence: int) -> int:
        """Returns how many frames are missing before this one, normally 0.

        Raises:
            RemoteProtocolError: when the frame belongs to another session, or its number was received before.
        """
        if session != self.session:
            msg = f"frame of session {session} in session {self.session}"
            raise RemoteProtocolError(msg, Violation.SESSION)
        missing = sequence - self.expected
        if missing < 0:
            msg = f"frame {sequence} is repeated; frame {self.expected} was expected"
            raise RemoteProtocolError(msg, Violation.SESSION)
        self.expected = sequence + 1
        return missing
