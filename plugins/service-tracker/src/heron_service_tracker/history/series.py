"""The series of the history: their names, and which are observed together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from heron_service_tracker.observed.task_figures import COUNTERS

__all__ = [
    "COMPONENT_LEVELS",
    "METRICS",
    "MOST_OF_AUTHORS",
    "STATUS_LEVELS",
    "TASK_COUNTERS",
    "TASK_LEVELS",
    "TASK_METRICS",
    "GroupValues",
    "Series",
    "SeriesGroup",
]

STATUS_LEVELS = ("queue-bytes", "latency-s", "back-pressure", "restarts")
"""Levels of components in each status. `back-pressure` is 1 while a task of it holds spouts back, else 0."""

COMPONENT_LEVELS = ("busy", "gc-share", "latency-p50-s", "latency-p99-s", "resident-bytes")
"""Levels of components in the metrics: means of shares, the latencies of the slowest task, and the sum of memory."""

TASK_LEVELS = ("back-pressure", "busy", "latency-p99-s", "resident-bytes")
"""Those that tasks have, too. Each is 40 bytes of a task and minute."""

TASK_COUNTERS = frozenset(COUNTERS)

TASK_METRICS = (*COUNTERS, *TASK_LEVELS)
"""Every metric of tasks."""

METRICS = (*COUNTERS, *STATUS_LEVELS, *COMPONENT_LEVELS)
"""Every metric of the history."""


MOST_OF_AUTHORS = 32
"""Authors' own metrics of a component whose values are kept, also those of its tasks: the first that are seen.

Their names begin with `OF_AUTHORS`. A topology manager sends one more of each task, which shows that there are more.
"""


class Series(NamedTuple):
    """A metric of a component (`task_id` 0) or of a task."""

    cluster: str
    topology: str
    component: str
    task_id: int
    metric: str


class SeriesGroup(NamedTuple):
    """The series of a component (`task_id` 0) or of a task that are observed together; tuples are quick as keys."""

    cluster: str
    topology: str
    component: str
    task_id: int
    metrics: tuple[str, ...]


GroupValues = Sequence[float | None]
"""A value of each metric of a group, in their order; None where nothing was measured."""
