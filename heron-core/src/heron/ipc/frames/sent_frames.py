"""The data frames of a session that its receiver has not confirmed yet: what is lost if the receiver ends it. Pure.

A CREDIT frame confirms the frames that the receiver has taken. A refusal of the session says how many frames the
receiver took before the refused one. So the sender can name the refused frame, and count what is lost with it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from heron.ipc.frames.frame import tuple_rows

__all__ = ["LostFrames", "SentFrames"]

_KEPT = 65_536  # more than a window has; a receiver that confirms nothing must not fill the memory


@dataclass(frozen=True, slots=True)
class LostFrames:
    """What is lost with a refused session, and the sender's view of the refused frame."""

    frames: int
    rows: int
    refused: str

    def __str__(self) -> str:
        return f"{self.refused}; {self.rows} tuples in {self.frames} data frames are lost"


class SentFrames:
    """Sequence, size and tuples of each data frame that is under way."""

    __slots__ = ("_frames",)

    def __init__(self) -> None:
        self._frames: deque[tuple[int, int, int]] = deque(maxlen=_KEPT)

    def note(self, sequence: int, size_bytes: int, segments: Sequence[bytes | bytearray | memoryview]) -> None:
        """Notes a data frame that was sent; `size_bytes` includes its header."""
        self._frames.append((sequence, size_bytes, tuple_rows(segments)))

    def confirm(self, taken: int) -> None:
        """Forgets the frames up to a sequence."""
        frames = self._frames
        while frames and frames[0][0] <= taken:
            frames.popleft()

    def lost(self, taken: int, limit_bytes: int) -> LostFrames:
        """What is lost after the receiver took the frames up to a sequence; `limit_bytes` is the sender's limit."""
        self.confirm(taken)
        sequence = taken + 1
        refused = f"frame {sequence} was no data frame here"
        if self._frames and self._frames[0][0] == sequence:
            _, size_bytes, rows = self._frames[0]
            place = "within" if size_bytes <= limit_bytes else "above"
            refused = (
                f"frame {sequence} was sent as a data frame of {size_bytes} bytes with {rows} tuples, "
                f"{place} the limit of {limit_bytes} bytes"
            )
        return LostFrames(len(self._frames), sum(rows for _, _, rows in self._frames), refused)
