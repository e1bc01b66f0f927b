"""A call of ``Log`` on its way from its client to the topology, and the answer on its way back."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from heron_connector_scribe.entries import Entry

__all__ = ["Answer", "Batch", "Caller", "Fate", "LogEntry"]


class LogEntry(NamedTuple):
    """A message of a Scribe client.

    Attributes:
        category: bytes that are not UTF-8 are ``\\xNN``.
        partition: of its category, from 0; `ServiceOptions.partitions` has the number.
        message: as it came, in most formats with a line end.
    """

    category: str
    partition: int
    message: bytes


class Answer(enum.IntEnum):
    """Scribe's ``ResultCode``."""

    OK = 0
    TRY_LATER = 1


class Fate(enum.Enum):
    """Whether the client has the answer. Only the thread of the server changes it."""

    WAITING = enum.auto()
    """There is no answer yet, and the client waits."""
    GONE = enum.auto()
    """The connection ended before the answer was sent, or may have ended before it arrived."""
    SENT = enum.auto()
    CONFIRMED = enum.auto()
    """The client went on, or closed the connection in order, behind the answer."""


class Caller(Protocol):
    """The client of a batch."""

    fate: Fate


class Batch:
    """The entries of one call.

    Attributes:
        caller: who waits for the answer. A client that calls again with the same batch replaces the former one.
        digest: equal for equal calls of the same host; empty where nothing recognises them.
        taken: how many entries were handed to the topology.
        answered: whether the answer is decided.
        answered_s: when that was; until then, when the call arrived.
    """

    __slots__ = ("answered", "answered_s", "arrived_s", "caller", "digest", "entries", "size_bytes", "taken")

    def __init__(
        self, entries: Sequence[Entry], caller: Caller, size_bytes: int, arrived_s: float, digest: bytes = b""
    ) -> None:
        self.entries, self.caller, self.digest = entries, caller, digest
        self.size_bytes, self.arrived_s = size_bytes, arrived_s
        self.answered_s = arrived_s
        self.taken = 0
        self.answered = False

    @property
    def will_come_again(self) -> bool:
        """Whether the client has gone without an answer, so that it keeps the batch."""
        return not self.answered and self.caller.fate is Fate.GONE
