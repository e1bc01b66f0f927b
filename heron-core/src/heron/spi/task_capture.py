"""What a task has emitted in some seconds: the times, the numbers and the values of its tuples, or only their shape.

A flush is recorded with its time and its number of tuples. It keeps some of its rows, evenly spaced. A row that is kept
therefore stands for itself and for the tuples around it.
"""

from __future__ import annotations

from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Final
from uuid import UUID

import msgspec

from heron.spi.typed_values import decode_document

__all__ = ["CAPTURED_TYPES", "CaptureShape", "CapturedFlush", "CapturedStream", "TaskCapture", "decode_capture"]

CAPTURED_TYPES: Final[frozenset[type]] = frozenset(
    {complex, date, datetime, time, timedelta, timezone, Decimal, UUID},
)
"""The types of captured values beside None, bool, int, float, str, bytes, bytearray, tuple, list, dict, set, frozenset.

Subclasses do not count: a capture has no class of an author, and runs none of its code.
"""


class CaptureShape(msgspec.Struct, frozen=True):
    """How values become their shape. `keys` are the ``(stream, field)`` to hash, with the secret `salt`."""

    keys: frozenset[tuple[str, str]]
    salt: bytes


class CapturedStream(msgspec.Struct, frozen=True):
    """A stream of the task, and its fields."""

    name: str
    fields: tuple[str, ...]


class CapturedFlush(msgspec.Struct, frozen=True):
    """A flush of `tuples` tuples, `at_us` after the begin; `stream` is a place in `TaskCapture.streams`.

    `rows` is a pickle, protocol 5, of the list of the `kept` rows. A row of a stream with one field is the value.
    """

    at_us: int
    stream: int
    tuples: int
    kept: int
    rows: bytes


class TaskCapture(msgspec.Struct, frozen=True):
    """What a task has emitted in `lasted_s` seconds from `began_at_s` (wall clock), in order.

    - `after_limit` counts tuples that were emitted when the limit of bytes was reached: no flush has them.
    - `unkept` counts the tuples of flushes whose values cannot be captured, by the reason, such as the name of a type.
    """

    topology: str
    component: str
    task_id: int
    container_id: int
    incarnation: int
    pid: int
    host: str
    began_at_s: float
    lasted_s: float
    streams: tuple[CapturedStream, ...]
    flushes: tuple[CapturedFlush, ...]
    after_limit: int
    unkept: dict[str, int]


def decode_capture(data: bytes) -> TaskCapture:
    """The capture from JSON.

    Raises:
        RemoteProtocolError: when the bytes do not decode.
    """
    return decode_document(data, TaskCapture, "a capture")
