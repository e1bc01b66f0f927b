"""What a task and the driver say to each other: typed JSON, one message a frame."""

from __future__ import annotations

import enum

import msgspec

__all__ = ["Beat", "Ended", "Hello", "LogText", "Refused", "Said", "Up", "Word", "said_in"]


class Word(enum.Enum):
    """The driver's: ``go`` or ``leave`` answer a hello; the others come at any time."""

    GO = "go"
    LEAVE = "leave"
    BEAT = "beat"
    TERMINATE = "terminate"
    KILL = "kill"


class Hello(msgspec.Struct, frozen=True, tag_field="say", tag="hello"):
    """The first word of a task; the ticket is that of its order."""

    ticket: str
    host: str


class Up(msgspec.Struct, frozen=True, tag_field="say", tag="up"):
    """The executor runs; `begun` tells its process from others of that number."""

    pid: int
    begun: str


class Refused(msgspec.Struct, frozen=True, tag_field="say", tag="refused"):
    """The executor cannot be started."""

    error: str


class Beat(msgspec.Struct, frozen=True, tag_field="say", tag="beat"):
    """The task is there."""


class LogText(msgspec.Struct, frozen=True, tag_field="say", tag="log"):
    """What the file of that name has got."""

    file: str
    text: str


class Ended(msgspec.Struct, frozen=True, tag_field="say", tag="ended"):
    """The last word of a task: the executor and all that it started are gone; `error` is "" where it ended in order.

    `own` says that it was the executor's own failing.
    """

    error: str
    own: bool = False


Said = Hello | Up | Refused | Beat | LogText | Ended

_decoder = msgspec.json.Decoder(Said)


def said_in(frame: bytes) -> Said | None:
    """What a task says in a frame; None when it is nothing that tasks say."""
    try:
        said: Said = _decoder.decode(frame)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    return said
