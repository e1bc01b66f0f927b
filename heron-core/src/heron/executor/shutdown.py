"""The order in which a container's processes stop. Pure: who is alive in, instructions out.

Instances go first, so that what they send is still carried; then stream manager or topology manager; the metrics
manager goes last, because everybody's last metrics are for it. Each group is asked, and killed when its time is over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["DRAIN_S", "HURRY_S", "Shutdown", "StopStep"]

DRAIN_S = 2.0
"""What the metrics manager has for its sinks (heron.metricsmgr)."""

HURRY_S = (2.0, 2.5, 3.5)
"""When each group is killed after SIGTERM: all within the 5 s in which an executor must be gone."""

_MIDDLE_S = 0.5  # stream and topology manager have nothing to finish


@dataclass(frozen=True, slots=True)
class StopStep:
    """Ask these to stop, kill those; `done` when nobody is left."""

    ask: frozenset[str] = frozenset()
    kill: frozenset[str] = frozenset()
    done: bool = False


class Shutdown:
    """One shutdown; times are monotonic seconds."""

    def __init__(self, groups: Sequence[frozenset[str]], grace_s: float, now_s: float) -> None:
        self._groups = groups
        self._deadlines = [
            now_s + grace_s,
            now_s + grace_s + _MIDDLE_S,
            now_s + grace_s + _MIDDLE_S + DRAIN_S,
        ]
        self._asked: set[str] = set()
        self._killed: set[str] = set()

    def hurry(self, now_s: float) -> None:
        """The executor itself must be gone soon."""
        for index, limit_s in enumerate(HURRY_S):
            self._deadlines[index] = min(self._deadlines[index], now_s + limit_s)

    def step(self, alive: frozenset[str], now_s: float) -> StopStep:
        """What to do now; to be called after each end of a process and at `next_at_s`."""
        ask: set[str] = set()
        kill: set[str] = set()
        for group, deadline in zip(self._groups, self._deadlines, strict=True):
            here = alive & group
            ask |= here - self._asked
            if now_s >= deadline:
                kill |= here - self._killed
            if here - self._killed - kill:
                break  # the next group waits for this one
        self._asked |= ask
        self._killed |= kill
        return StopStep(frozenset(ask), frozenset(kill), not alive)

    def next_at_s(self, now_s: float) -> float | None:
        """When the next group's time is over; None when all are."""
        return next((deadline for deadline in self._deadlines if deadline > now_s), None)
