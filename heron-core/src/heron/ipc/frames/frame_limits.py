"""The limits of frames, and the division of segments into frames within the limits. Pure.

Every sender keeps the limits and every receiver checks them. The frame of a message is divided at its segments, and
each segment that a process makes fits into a frame alone:

| part of a segment | at most |
|---|---|
| payload of tuples | `heron.tuple.max.bytes` |
| options of tuples | `options_max_bytes` |
| destinations | 65,535, with 4 bytes each |
| listed roots | `MOST_LISTED`, with 16 bytes each |

ZeroMQ closes a connection without a word when a message exceeds the limit of the socket. The limit of the socket is
therefore larger, so that the receiver can refuse the frame by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from heron.errors import LimitExceededError, RemoteProtocolError, Violation
from heron.ipc.frames.frame import FRAME_HEADER_BYTES, FrameKind

__all__ = ["CONTROL_MAX_BYTES", "CONTROL_SOCKET_BYTES", "MOST_LISTED", "FrameLimits", "divided", "options_max_bytes"]

_Segment = TypeVar("_Segment", bytes, bytearray, memoryview, bytes | bytearray | memoryview)

_KIB = 1024

CONTROL_MAX_BYTES = 64 * _KIB * _KIB
"""The largest control frame. `heron.ipc.reduced_messages` makes a larger message smaller, or names it."""

CONTROL_SOCKET_BYTES = 2 * CONTROL_MAX_BYTES
"""The limit of a socket for control frames alone: ZeroMQ refuses a larger message before it takes memory for it."""

MOST_LISTED = 32 * _KIB
"""The most roots that one segment lists: 512 KiB, which is within the limit of frames under any settings."""

_OPTIONS_BYTES = 512 * _KIB


def options_max_bytes(tuple_max_bytes: int) -> int:
    """The most bytes that the options of a segment of tuples may take.

    A frame has room for a tuple of the largest size, its options, and 512 KiB for heads and destinations.
    """
    return tuple_max_bytes + _OPTIONS_BYTES


@dataclass(frozen=True, slots=True)
class FrameLimits:
    """The largest DATA or ACK frame of a topology (`EngineSettings.frame_max_bytes`), and the other limits."""

    data_bytes: int

    @property
    def socket_bytes(self) -> int:
        """The limit of a socket. A frame above its own limit still arrives, unless it exceeds the limit by far."""
        return self.data_bytes + CONTROL_MAX_BYTES

    def of(self, kind: int) -> int:
        """The largest frame of a kind."""
        return CONTROL_MAX_BYTES if kind == FrameKind.CONTROL else self.data_bytes

    def check(self, kind: int, size_bytes: int) -> None:
        """Checks a frame that has arrived.

        Raises:
            RemoteProtocolError: when the frame is larger than its sender may make it.
        """
        if size_bytes > (CONTROL_MAX_BYTES if kind == FrameKind.CONTROL else self.data_bytes):
            msg = f"frame of kind {kind} has {size_bytes} bytes, more than the limit of {self.of(kind)} bytes"
            raise RemoteProtocolError(msg, Violation.SIZE)


def divided(segments: Sequence[_Segment], max_bytes: int) -> Iterator[tuple[Sequence[_Segment], int]]:
    """``(segments, their size)`` of each frame of at most `max_bytes`, header included; no frame is empty.

    The usual message is one frame, and is not copied.

    Raises:
        LimitExceededError: when a segment does not fit into a frame alone; the frames before it were yielded.
    """
    room = max_bytes - FRAME_HEADER_BYTES
    size_bytes = sum(map(len, segments))
    if size_bytes <= room:
        if segments:
            yield segments, size_bytes
        return
    taken: list[_Segment] = []
    taken_bytes = 0
    for each in segments:
        if len(each) > room:
            msg = (
                f"segment of {len(each)} bytes does not fit into a frame of {max_bytes} bytes; raise "
                "heron.tuple.max.bytes in the profile's engine section"
            )
            raise LimitExceededError(msg)
        if taken and taken_bytes + len(each) > room:
            yield taken, taken_bytes
            taken, taken_bytes = [], 0
        taken.append(each)
        taken_bytes += len(each)
    yield taken, taken_bytes
