"""Which holders live, as seen from here: one whose mark has not changed for a lease is dead.

A holder changes the mark of its node several times in a lease. Nobody's clock is compared with another's: what counts
is how long *this* process has seen the mark unchanged. Time between two looks counts as one renewal at most, so that
an HDFS that was away, or a process that was stopped, is no reason to take a holder for dead. Neither is an HDFS that
can be read and not written (safe mode): whoever finds a holder silent shows that it can, or begins to count anew.
"""

from __future__ import annotations

import enum
import threading
from dataclasses import dataclass

from heron.clock import Clock

__all__ = ["RENEWALS_PER_LEASE", "Lives", "Sign"]

RENEWALS_PER_LEASE = 4
"""Three may fail before others take the holder for dead."""


class Sign(enum.Enum):
    """What is known of a holder."""

    ALIVE = "alive"
    SILENT = "silent"
    """For half of its lease."""
    DEAD = "dead"


@dataclass(slots=True)
class _Seen:
    holder: str
    mark: object
    looked_s: float
    unchanged_s: float = 0.0


class Lives:
    """What one process has seen of all holders; thread-safe."""

    def __init__(self, lease_s: float, clock: Clock) -> None:
        self._lease_s = lease_s
        self._clock = clock
        self._guard = threading.Lock()
        self._seen: dict[str, _Seen] = {}

    def look(self, node: str, holder: str, mark: object) -> Sign:
        """Notes that the node's mark is that now."""
        now_s = self._clock.monotonic_s()
        with self._guard:
            seen = self._seen.get(node)
            if seen is None or seen.holder != holder or seen.mark != mark:
                self._seen[node] = _Seen(holder, mark, now_s)
                return Sign.ALIVE
            seen.unchanged_s += min(now_s - seen.looked_s, self._lease_s / RENEWALS_PER_LEASE)
            seen.looked_s = now_s
            if seen.unchanged_s < self._lease_s / 2:
                return Sign.ALIVE
            return Sign.SILENT if seen.unchanged_s < self._lease_s else Sign.DEAD

    def forget(self, node: str) -> None:
        """Its holder may live: it had no way to show it."""
        with self._guard:
            self._seen.pop(node, None)
