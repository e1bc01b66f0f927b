"""Which tasks cause back pressure, since when, and how long they have in all. Pure."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Culprits", "PressureChanged"]


@dataclass(frozen=True, slots=True)
class PressureChanged:
    """A task became a culprit, or is one no longer."""

    task_id: int
    on: bool
    duration_s: float = 0.0


class Culprits:
    """Compares the congested tasks of a moment with those before."""

    __slots__ = ("_since", "_total_s")

    def __init__(self) -> None:
        self._since: dict[int, float] = {}
        self._total_s: dict[int, float] = {}

    def update(self, congested: frozenset[int], now_s: float) -> tuple[PressureChanged, ...]:
        """What has changed now (monotonic seconds)."""
        changes = []
        for task_id in sorted(congested - self._since.keys()):
            self._since[task_id] = now_s
            changes.append(PressureChanged(task_id, True))
        for task_id in sorted(self._since.keys() - congested):
            duration_s = now_s - self._since.pop(task_id)
            self._total_s[task_id] = self._total_s.get(task_id, 0.0) + duration_s
            changes.append(PressureChanged(task_id, False, duration_s))
        return tuple(changes)

    def present(self) -> frozenset[int]:
        """The culprits of this moment."""
        return frozenset(self._since)

    def totals_s(self, now_s: float) -> dict[int, float]:
        """How long each task has been a culprit so far."""
        totals = dict(self._total_s)
        for task_id, since_s in self._since.items():
            totals[task_id] = totals.get(task_id, 0.0) + now_s - since_s
        return totals
