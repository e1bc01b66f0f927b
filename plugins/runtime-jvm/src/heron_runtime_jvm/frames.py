"""Frames of the child protocol: u32 length, then an array in MessagePack whose first entry is the kind.

WIRE.md describes each kind. A frame of tuples has the rows of one source; a frame of emits has the rows of one stream.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from heron_runtime_jvm.java_values import java_value
from heron_runtime_multilang.child_error import ChildProtocolError

__all__ = ["Frame", "FrameDecoder", "FrameKind", "encoded", "links_of"]

_HEAD_BYTES = 4

Frame: TypeAlias = list[object]
"""The entries of a frame; the first one is its kind."""


class FrameKind(enum.IntEnum):
    """The kinds of frames: those below 16 go to the child."""

    SETUP = 0
    TUPLES = 1
    NEXT = 2
    ACKED = 3
    FAILED = 4
    ACTIVATE = 5
    DEACTIVATE = 6
    PING = 7
    TASK_IDS = 8
    PLAIN_TUPLES = 9
    PLAN = 10
    READY = 16
    EMIT = 17
    ASK = 18
    ACK = 19
    FAIL = 20
    DONE = 21
    TURN_OVER = 22
    PONG = 23
    ERROR = 24
    METRICS = 25
    END = 26
    EMIT_PLAIN = 27


_encode = msgspec.msgpack.Encoder().encode


def encoded(kind: FrameKind, *parts: object) -> bytes:
    """Return a frame as bytes."""
    body = _encode([int(kind), *parts])
    return len(body).to_bytes(_HEAD_BYTES, "big") + body


def links_of(links: object, rows: int) -> Sequence[int | None] | None:
    """Return the links of a frame of rows; a number is the first of numbers that follow each other.

    An entry of *emit* may also be a list, of the anchors of its row.

    Raises:
        ValueError: when there is not one for each row.
    """
    if isinstance(links, int):
        return range(links, links + rows)
    if links is None or (isinstance(links, list) and len(links) == rows):
        return links
    msg = f"{rows} rows have other links: {links!r:.80}"
    raise ValueError(msg)


class FrameDecoder:
    """Decodes the frames of a child as they arrive."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._rest = b""
        self._decode = msgspec.msgpack.Decoder(ext_hook=java_value).decode

    def feed(self, data: bytes) -> list[Frame]:
        """Return the frames that are complete now.

        Raises:
            ChildProtocolError: when a frame cannot be read, or is larger than the limit.
        """
        rest = self._rest + data if self._rest else data
        view, at, frames = memoryview(rest), 0, []
        while len(rest) - at >= _HEAD_BYTES:
            start = at + _HEAD_BYTES
            size = int.from_bytes(view[at:start], "big")
            if size > self._most_bytes:
                limit = f"{self._most_bytes} bytes (message_bytes)"
                msg = f"a frame has {size} bytes, the limit is {limit}; emit smaller values"
                raise ChildProtocolError(msg)
            if len(rest) - start < size:
                break
            at = start + size
            frames.append(self._frame(view[start:at]))
        self._rest = rest[at:]
        return frames

    def end(self) -> list[Frame]:
        """Return nothing: what is behind the last frame is no frame."""
        return []

    @property
    def unfinished_bytes(self) -> int:
        """The size of the frame that has arrived in part."""
        return len(self._rest)

    def _frame(self, body: memoryview) -> Frame:
        try:
            frame = self._decode(body)
        except (msgspec.DecodeError, ValueError, TypeError, RecursionError) as error:
            msg = f"a frame of {len(body)} bytes cannot be read: {error}"
            raise ChildProtocolError(msg) from error
        if not isinstance(frame, list) or not frame:
            msg = f"a frame of {len(body)} bytes is no array that begins with a kind"
            raise ChildProtocolError(msg)
        return frame
