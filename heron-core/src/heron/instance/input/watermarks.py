"""The event-time watermark of a task: from the watermarks of its upstream tasks to its own. Pure.

The watermark of a task is the smallest time over the upstream tasks that are neither idle nor ended. An upstream task
that has sent no time yet holds it back. If every upstream task is idle or has ended, the watermark is the largest time
of the idle ones. It never decreases: a smaller result leaves it as it is.

A task forwards its watermark when it grows, and when the task becomes idle or active. A marker from upstream that
changes neither makes it repeat the watermark, at most once in `REPEAT_S`, so that restarted tasks at any depth hear it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from heron.ipc.frames.frame import Marker
from heron.planner.physical_plan import PlanIndex, UpdatePhase

__all__ = ["REPEAT_S", "TaskWatermark", "WatermarkStep", "watermark_sources"]

REPEAT_S = 1.0
"""The shortest time between two markers that say the same."""


def watermark_sources(index: PlanIndex, component: str) -> frozenset[int]:
    """The upstream tasks that a task waits for: all that run, except those that an update still prepares."""
    sources, update = index.upstream_tasks(component), index.plan.update
    if update is None:
        return sources
    prepared = update.added if update.phase is UpdatePhase.PREPARE else ()
    return sources.difference(prepared, update.absent)


@dataclass(frozen=True, slots=True)
class WatermarkStep:
    """What a task does now: it calls `process_watermark` if its watermark has grown, then forwards the marker."""

    time_us: int
    has_grown: bool
    marker: Literal[Marker.WATERMARK, Marker.IDLE]

    @property
    def time_s(self) -> float:
        """The watermark in seconds since the epoch."""
        return self.time_us / 1_000_000


class TaskWatermark:
    """The watermark of one bolt task. Each event returns what to do; None is nothing."""

    __slots__ = ("_ended", "_forwarded", "_forwarded_at_s", "_idle", "_sources", "_times_us", "time_us")

    def __init__(self, sources: frozenset[int]) -> None:
        self._sources = sources
        self._times_us: dict[int, int] = {}
        self._idle: set[int] = set()
        self._ended: set[int] = set()
        self._forwarded: Marker | None = None
        self._forwarded_at_s = -math.inf
        self.time_us: int | None = None
        """The watermark; None before the first."""

    def receive(self, task_id: int, time_us: int, *, idle: bool, now_s: float) -> WatermarkStep | None:
        """A marker of an upstream task. A task that restarts may send an earlier time than before: it has no effect.

        A task that a newer plan adds may send before this task has the plan; its time counts from then on.
        """
        self._times_us[task_id] = max(time_us, self._times_us.get(task_id, time_us))
        (self._idle.add if idle else self._idle.discard)(task_id)
        return self._step(now_s, repeats=True) if task_id in self._sources else None

    def end(self, task_id: int, now_s: float) -> WatermarkStep | None:
        """An upstream task has ended, and holds nothing back."""
        self._ended.add(task_id)
        return self._step(now_s)

    def set_sources(self, sources: frozenset[int], now_s: float) -> WatermarkStep | None:
        """Replaces the upstream tasks by those of a new plan."""
        self._sources = sources
        return self._step(now_s)

    def _step(self, now_s: float, *, repeats: bool = False) -> WatermarkStep | None:
        running = self._sources - self._ended
        if not (self._times_us and running):
            return None
        active = running - self._idle
        reached_us = self._smallest(active) if active else max(self._times_us[task_id] for task_id in running)
        has_grown = reached_us is not None and (self.time_us is None or reached_us > self.time_us)
        if has_grown:
            self.time_us = reached_us
        if self.time_us is None:
            return None
        marker: Literal[Marker.WATERMARK, Marker.IDLE] = Marker.WATERMARK if active else Marker.IDLE
        is_due = repeats and now_s - self._forwarded_at_s >= REPEAT_S
        if not (has_grown or is_due or marker is not self._forwarded):
            return None
        self._forwarded, self._forwarded_at_s = marker, now_s
        return WatermarkStep(self.time_us, has_grown, marker)

    def _smallest(self, active: frozenset[int]) -> int | None:
        """The smallest time of these tasks; None if one of them has sent none yet."""
        times_us = [self._times_us[task_id] for task_id in active if task_id in self._times_us]
        return min(times_us) if len(times_us) == len(active) else None
