"""On account of whom a spout is held back, and how long it has been in all.

Written by the gateway thread, read by the task thread: each value is exchanged as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable

from heron.clock import Clock

__all__ = ["HeldBack"]


class HeldBack:
    """The culprits of back pressure that this spout feeds; empty for a bolt, and while there is no stream manager."""

    __slots__ = ("_clock", "_time", "culprits")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.culprits: frozenset[int] = frozenset()
        self._time = (0.0, 0.0)  # seconds until the present state began, and when that was

    def begin(self, culprits: Iterable[int] = ()) -> None:
        """A session begins, with these culprits, or is over."""
        self._become(frozenset(culprits))

    def change(self, culprit: int, *, on: bool) -> None:
        """A task became a culprit, or is one no longer."""
        self._become(self.culprits | {culprit} if on else self.culprits - {culprit})

    def total_s(self) -> float:
        """How long it has been held back so far."""
        total_s, since_s = self._time
        return total_s + (self._clock.monotonic_s() - since_s if self.culprits else 0.0)

    def _become(self, culprits: frozenset[int]) -> None:
        if bool(culprits) != bool(self.culprits):
            self._time = (self.total_s(), self._clock.monotonic_s())
        self.culprits = culprits
