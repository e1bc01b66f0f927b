"""A clock that stands still until a test moves it."""

from __future__ import annotations

__all__ = ["FakeClock"]


class FakeClock:
    """Implements `heron.clock.Clock`; both scales move together."""

    __slots__ = ("_monotonic_s", "_wall_s")

    def __init__(self, monotonic_s: float = 1000.0, wall_s: float = 1_700_000_000.0) -> None:
        self._monotonic_s = monotonic_s
        self._wall_s = wall_s

    def monotonic_s(self) -> float:
        """Monotonic seconds."""
        return self._monotonic_s

    def wall_s(self) -> float:
        """Seconds since the epoch."""
        return self._wall_s

    def advance(self, seconds: float) -> None:
        """Lets that much time pass.

        Raises:
            ValueError: when `seconds` is negative; use `jump_wall` for a clock that was set.
        """
        if seconds < 0:
            msg = f"time does not go back by {seconds} s"
            raise ValueError(msg)
        self._monotonic_s += seconds
        self._wall_s += seconds

    def jump_wall(self, seconds: float) -> None:
        """Moves only the wall clock, either way, as when somebody sets the machine's time."""
        self._wall_s += seconds
