"""The memory of each task in the last minutes, from one look at the figures after the other. Pure.

A task that leaks has no other to be compared with if it is the only one of its component. Its growth shows it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from heron_service_tracker.observed.task_figures import FiguresOfTasks

__all__ = ["GROWTH_MINUTES", "GrowingTask", "RecentMemory", "growing_tasks", "memory_after"]

GROWTH_MINUTES: Final = 3

_STEP_S = 30.0
_STEPS = int(GROWTH_MINUTES * 60 / _STEP_S)
_GAP_S = 2 * _STEP_S  # after a longer time without a look, nobody knows what happened in it
_STEP_BYTES = 1 << 19  # a process that works has some pages more or less
_LEAST_BYTES = 16 << 20
_LEAST_SHARE = 0.2  # of the memory at the beginning: it doubles in less than a quarter of an hour


@dataclass(frozen=True, slots=True)
class RecentMemory:
    """The bytes of each task, oldest first, and when the newest were seen (monotonic seconds)."""

    at_s: float = float("-inf")
    by_task: dict[int, tuple[float, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GrowingTask:
    """A task whose memory has grown in each half minute of the last ones."""

    component: str
    task_id: int
    bytes_before: float
    bytes_now: float


def memory_after(memory: RecentMemory, figures: FiguresOfTasks, now_s: float) -> RecentMemory:
    """Return the memory of the last minutes with that of these figures; the same within half a minute."""
    passed_s = now_s - memory.at_s
    if passed_s < _STEP_S:
        return memory
    former = memory.by_task if passed_s <= _GAP_S else {}
    by_task = {
        task_id: (*former.get(task_id, ()), each.resident_bytes)[-_STEPS - 1 :]
        for task_id, each in figures.by_task.items()
        if each.resident_bytes is not None
    }
    return RecentMemory(now_s, by_task)


def growing_tasks(memory: RecentMemory, figures: FiguresOfTasks) -> Iterator[GrowingTask]:
    """Yield the tasks that needed more memory at each moment, by number; none before the minutes have passed."""
    for task_id, sizes in sorted(memory.by_task.items()):
        if len(sizes) <= _STEPS or task_id not in figures.components:
            continue
        least = max(_LEAST_BYTES, _LEAST_SHARE * sizes[0])
        if sizes[-1] - sizes[0] >= least and all(now - before >= _STEP_BYTES for before, now in pairwise(sizes)):
            yield GrowingTask(figures.components[task_id], task_id, sizes[0], sizes[-1])
