"""Who is told to stop, and in which order, when the topology is over. Pure.

The container of the topology manager that leads comes last, as that one ends with it: when every other executor has
confirmed, or has had its time.
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["StopSequence"]

_CONFIRM_S = 2.0  # an executor confirms at once; one that is just being started again has this long to be told


class StopSequence:
    """One farewell; times are monotonic seconds."""

    def __init__(self, containers: Iterable[int], own: int, now_s: float) -> None:
        self._own = own
        self._waiting = set(containers) - {own}
        self._deadline_s = now_s + _CONFIRM_S
        self._told: set[int] = set()

    def confirmed(self, container_id: int) -> None:
        """This executor knows."""
        self._waiting.discard(container_id)

    def connected(self, container_id: int) -> None:
        """This executor is new to the topology manager: it has to be told (again)."""
        self._told.discard(container_id)

    def due(self, connected: Iterable[int], now_s: float) -> frozenset[int]:
        """Whom to tell now; they count as told."""
        others_done = not self._waiting or now_s >= self._deadline_s
        due = frozenset(each for each in connected if each not in self._told and (each != self._own or others_done))
        self._told |= due
        return due
