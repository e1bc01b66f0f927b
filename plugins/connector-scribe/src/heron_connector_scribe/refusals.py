"""What a collector counts, and what it logs of clients that it refuses."""

from __future__ import annotations

import logging
from collections import Counter
from enum import Enum

from heron.clock import Clock

__all__ = ["Refusal", "ServiceCounts"]

_log = logging.getLogger(__name__)

_LOGGED_S = 60.0


class Refusal(Enum):
    """Why a connection was closed, or a call was put off; the names of counters."""

    MALFORMED = "malformed"
    FAILED = "failed"
    TOO_LARGE = "too-large"
    STALLED = "stalled"
    UNREAD = "unread"
    CONNECTIONS = "connections"
    DESCRIPTORS = "descriptors"
    TOO_MANY_MESSAGES = "too-many-messages"
    NO_ROOM = "no-room"
    TOO_LATE = "too-late"


class ServiceCounts:
    """Counts since the start, by name. Only the server's thread changes them."""

    def __init__(self, name: str, clock: Clock) -> None:
        self.totals: Counter[str] = Counter()
        self._name, self._clock = name, clock
        self._logged_s: dict[Refusal, float] = {}

    def refused(self, kind: Refusal, why: str, error: Exception | None = None) -> None:
        """Count a refusal, and log one of its kind a minute, with the traceback of an error."""
        name = f"refused.{kind.value}"
        self.totals[name] += 1
        now_s = self._clock.monotonic_s()
        if now_s - self._logged_s.get(kind, -_LOGGED_S) >= _LOGGED_S:
            self._logged_s[kind] = now_s
            _log.warning("source %r: %s (%s, %d so far)", self._name, why, name, self.totals[name], exc_info=error)
