"""The frames that a JVM has and has not executed: how many bytes they have, and how many rows the next may have."""

from __future__ import annotations

from collections import deque

__all__ = ["FrameWindow"]

_MOST_BYTES = 16 * 1024 * 1024  # as the hard limit of a task: the JVM's queue is memory too
_FRAME_BYTES = 256 * 1024
_ROWS = 512


class FrameWindow:
    """Ids grow. Rows that were large make the next frames shorter."""

    def __init__(self) -> None:
        self.frame_rows = _ROWS
        self._bytes = 0
        self._frames: deque[tuple[int, int]] = deque()

    @property
    def is_full(self) -> bool:
        """Whether the JVM has so many bytes that the next frame has to wait."""
        return self._bytes >= _MOST_BYTES

    def sent(self, last_id: int, size: int, rows: int) -> None:
        """A frame was sent."""
        self._frames.append((last_id, size))
        self._bytes += size
        self.frame_rows = max(1, min(_ROWS, _FRAME_BYTES * rows // size))

    def done(self, last_id: int) -> None:
        """Every tuple up to this id has been executed."""
        frames = self._frames
        while frames and frames[0][0] <= last_id:
            self._bytes -= frames.popleft()[1]
