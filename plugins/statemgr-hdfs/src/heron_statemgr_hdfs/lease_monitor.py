"""Finds dead holders: a holder is dead if its mark has not changed for the time of a lease.

A holder changes the mark of its node several times in each lease. The clocks of machines are not compared: only the
time counts for which *this* process has seen the mark unchanged. Time between two reads counts as one renewal period at
most. So a holder is not declared dead because HDFS was away or this process was stopped. In safe mode HDFS can be read
but not written. Therefore a process that finds a holder silent first tests a write; if it fails, the count restarts.
"""

from __future__ import annotations

import enum
import threading
from dataclasses import dataclass

from heron.clock import Clock

__all__ = ["RENEWALS_PER_LEASE", "HolderState", "LeaseMonitor"]

RENEWALS_PER_LEASE = 4
"""Three renewals may fail before other processes declare the holder dead."""


class HolderState(enum.Enum):
    """The state of a holder, as this process sees it."""

    ALIVE = "alive"
    SILENT = "silent"
    """No renewal for half of the lease."""
    DEAD = "dead"


@dataclass(slots=True)
class _Lease:
    holder: str
    mark: object
    read_s: float
    unchanged_s: float = 0.0


class LeaseMonitor:
    """The leases that one process has observed; thread-safe."""

    def __init__(self, lease_s: float, clock: Clock) -> None:
        self._lease_s = lease_s
        self._clock = clock
        self._guard = threading.Lock()
        self._leases: dict[str, _Lease] = {}

    def observe(self, node: str, holder: str, mark: object) -> HolderState:
        """Record the mark that this process has just read, and return the state of the holder."""
        now_s = self._clock.monotonic_s()
        with self._guard:
            lease = self._leases.get(node)
            if lease is None or lease.holder != holder or lease.mark != mark:
                self._leases[node] = _Lease(holder, mark, now_s)
                return HolderState.ALIVE
            lease.unchanged_s += min(now_s - lease.read_s, self._lease_s / RENEWALS_PER_LEASE)
            lease.read_s = now_s
            if lease.unchanged_s < self._lease_s / 2:
                return HolderState.ALIVE
            return HolderState.SILENT if lease.unchanged_s < self._lease_s else HolderState.DEAD

    def restart(self, node: str) -> None:
        """Start to count from zero, because the holder could not renew its lease."""
        with self._guard:
            self._leases.pop(node, None)
