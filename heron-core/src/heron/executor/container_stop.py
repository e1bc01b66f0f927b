"""The order in which the processes of a container stop. Pure: takes the processes alive, returns instructions.

Instances stop first, so that the stream manager still forwards their data. The stream manager follows. The metrics
manager stops last, because it receives the last metrics of all others. Each group is asked to stop, and killed when its
time is over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["DRAIN_S", "HURRY_S", "ContainerStop", "StopStep"]

DRAIN_S = 2.0
"""The time that the metrics manager has to finish its sinks (`heron.metricsmgr.main`)."""

HURRY_S = (2.0, 2.5, 3.5)
"""When each group is killed after SIGTERM, in seconds: all within the 5 s in which an executor must end."""

_MIDDLE_S = 0.5  # a stream manager has nothing to finish


@dataclass(frozen=True, slots=True)
class StopStep:
    """The processes to ask and to kill now; `done` when no process is left."""

    ask: frozenset[str] = frozenset()
    kill: frozenset[str] = frozenset()
    done: bool = False


class ContainerStop:
    """The stop of one container; times are monotonic seconds."""

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
        """Shortens the deadlines, because the executor itself must end soon."""
        for index, limit_s in enumerate(HURRY_S):
            self._deadlines[index] = min(self._deadlines[index], now_s + limit_s)

    def step(self, alive: frozenset[str], now_s: float) -> StopStep:
        """The instructions now; call it after each end of a process and at `next_at_s`."""
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
        """The next deadline of a group; None when all have passed."""
        return next((deadline for deadline in self._deadlines if deadline > now_s), None)
