"""A clock that only a test moves."""

from __future__ import annotations

__all__ = ["FakeClock"]


class FakeClock:
    """Implements `heron.clock.Clock`. Both times are in seconds; `advance` moves them together."""

    __slots__ = ("_monotonic_s", "_wall_s")

    def __init__(self, monotonic_s: float = 1000.0, wall_s: float = 1_700_000_000.0) -> None:
        self._monotonic_s = monotonic_s
        self._wall_s = wall_s

    def monotonic_s(self) -> float:
        """Return the monotonic time in seconds."""
        return self._monotonic_s

    def wall_s(self) -> float:
        """Return the seconds since the epoch."""
        return self._wall_s

    def advance(self, seconds: float) -> None:
        """Move both times forward.

        Raises:
            ValueError: when `seconds` is negative; `jump_wall` moves the wall clock back.
        """
        if seconds < 0:
            msg = f"time does not go back by {seconds} s"
            raise ValueError(msg)
        self._monotonic_s += seconds
        self._wall_s += seconds

    def jump_wall(self, seconds: float) -> None:
        """Move only the wall clock, forward or back, as when the time of a machine is set."""
        self._wall_s += seconds
