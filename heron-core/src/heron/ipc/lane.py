"""One direction of a data link: session, sequence, and the check of both at the receiver."""

from __future__ import annotations

from heron.errors import RemoteProtocolError
from heron.ipc.frame import FrameKind, frame_header

__all__ = ["ReceiveLane", "SendLane"]


class SendLane:
    """Numbers the frames of a session."""

    __slots__ = ("sequence", "session")

    def __init__(self, session: int) -> None:
        self.session = session
        self.sequence = 0

    def header(self, kind: FrameKind) -> bytes:
        """The header of the session's next data or ack frame."""
        self.sequence += 1
        return frame_header(kind, self.session, self.sequence)


class ReceiveLane:
    """Checks the numbers."""

    __slots__ = ("expected", "session")

    def __init__(self, session: int) -> None:
        self.session = session
        self.expected = 1

    def accept(self, session: int, sequence: int) -> int:
        """How many frames are missing before this one (0 normally).

        Raises:
            RemoteProtocolError: when the frame is of another session, or came before.
        """
        if session != self.session:
            msg = f"frame of session {session} in session {self.session}"
            raise RemoteProtocolError(msg)
        missing = sequence - self.expected
        if missing < 0:
            msg = f"frame {sequence} again; {self.expected} was expected"
            raise RemoteProtocolError(msg)
        self.expected = sequence + 1
        return missing
