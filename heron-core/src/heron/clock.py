"""Time, the only place that reads it: durations are monotonic seconds, dates are wall-clock seconds."""

from __future__ import annotations

import time
from typing import Protocol

__all__ = ["Clock", "SystemClock", "monotonic_s", "wall_s"]

monotonic_s = time.monotonic
"""Monotonic seconds; on one host the same scale in every process."""

wall_s = time.time
"""Seconds since the epoch, for what people read; never for a deadline (it may jump)."""


class Clock(Protocol):
    """What code that waits or measures is given, so that tests can move time themselves."""

    def monotonic_s(self) -> float:
        """Monotonic seconds."""
        ...

    def wall_s(self) -> float:
        """Seconds since the epoch."""
        ...


class SystemClock:
    """The machine's own clock."""

    __slots__ = ()

    def monotonic_s(self) -> float:
        """Monotonic seconds."""
        return time.monotonic()

    def wall_s(self) -> float:
        """Seconds since the epoch."""
        return time.time()
