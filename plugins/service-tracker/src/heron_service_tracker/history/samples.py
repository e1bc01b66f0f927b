"""What history keeps of an observation, and the increments of counters. Pure.

A total may become smaller: a process was restarted, or another topology manager leads, which knows only the processes
that run. That total is then a new beginning and no increment, because the time in which it was counted is not known.
The same holds after a gap, and while a new leader learns the totals of one process after the other: in its first
seconds, and later for the components whose totals have a task more. So a rate is never negative, and neither a restart
nor a gap makes a spike.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from operator import attrgetter
from statistics import fmean
from typing import NamedTuple

from heron_cli.client import TopologyStatus
from heron_service_tracker.flow import task_rows
from heron_service_tracker.flow_answers import TaskRow
from heron_service_tracker.observed import ObservedTopology
from heron_service_tracker.task_figures import COUNTERS

__all__ = [
    "METRICS",
    "TASK_COUNTERS",
    "TASK_METRICS",
    "Increments",
    "Sample",
    "Series",
    "component_readings",
    "level_readings",
    "task_readings",
]

_STATUS_LEVELS = ("queue-bytes", "latency-s", "back-pressure", "restarts")
"""Levels of components in each status. `back-pressure` is 1 while a task of it holds spouts back, else 0."""

Level = Callable[[TaskRow], float | None]

_METRIC_LEVELS: dict[str, Level] = {
    "busy": attrgetter("busy"),
    "gc-share": attrgetter("gc_share"),
    "latency-p50-s": attrgetter("latency_p50_s"),
    "latency-p99-s": attrgetter("latency_p99_s"),
    "resident-bytes": attrgetter("resident_bytes"),
}
"""Levels of components in the metrics: means of shares, the latencies of the slowest task, and the sum of memory."""

_TASK_LEVELS: dict[str, Level] = {
    "back-pressure": lambda row: 1.0 if row.culprit else 0.0,
    **{metric: _METRIC_LEVELS[metric] for metric in ("busy", "latency-p99-s", "resident-bytes")},
}
"""Those that tasks have, too. Each is 40 bytes of a task and minute."""

TASK_COUNTERS = frozenset(COUNTERS)

TASK_METRICS = (*COUNTERS, *sorted(_TASK_LEVELS))
"""Every metric of tasks."""

METRICS = (*COUNTERS, *_STATUS_LEVELS, *_METRIC_LEVELS)
"""Every metric of the history."""

_TASKS_S = 15.0  # between two totals of a task, whose buckets have a minute; figures come every 10 s, or every second
_LEARNS_S = 10.0  # a process reports its totals every second; one that is started again takes some


class Series(NamedTuple):
    """A metric of a component (`task_id` 0) or of a task; a tuple, because tuples are quick as keys."""

    cluster: str
    topology: str
    component: str
    task_id: int
    metric: str


class Sample(NamedTuple):
    """What one observation adds to a series: the value is `total` divided by `weight`.

    For a counter they are an increment and its seconds; for a level the level and 1.
    """

    series: Series
    total: float
    weight: float


def component_readings(topology: ObservedTopology) -> Iterator[tuple[Series, float]]:
    """The totals of counters and the levels in the status of an observation."""
    cluster, name, status = topology.cluster, topology.name, topology.status
    if status is None:
        return
    culprits = {each.component for each in status.backpressure}
    restarts: defaultdict[str, int] = defaultdict(int)
    for task in [each for each in status.tasks if each.restarts]:
        restarts[task.component] += task.restarts
    for each in status.components:
        totals = each.emitted, each.executed, each.acked, each.failed
        levels = each.queue_bytes, each.latency_s, each.name in culprits, restarts[each.name]
        for series, value in zip(_series_of(cluster, name, each.name), (*totals, *levels), strict=True):
            yield series, float(value)


@lru_cache(maxsize=1024)
def _series_of(cluster: str, topology: str, component: str) -> tuple[Series, ...]:
    """The counters and the levels in a status; each observation has the same."""
    return tuple(Series(cluster, topology, component, 0, metric) for metric in (*COUNTERS, *_STATUS_LEVELS))


def task_readings(topology: ObservedTopology) -> Iterator[tuple[Series, float]]:
    """The totals of the counters of tasks in the metrics of an observation."""
    figures = topology.figures
    for task_id, of_task in figures.by_task.items():
        for metric, total in of_task.totals.items():
            yield Series(topology.cluster, topology.name, figures.components[task_id], task_id, metric), total


def level_readings(topology: ObservedTopology) -> Iterator[tuple[Series, float]]:
    """The levels of tasks and components in the metrics of an observation; what was not measured is left out."""
    cluster, name = topology.cluster, topology.name
    of_components: defaultdict[str, list[TaskRow]] = defaultdict(list)
    for row in task_rows(topology):
        of_components[row.component].append(row)
        for metric, level in _TASK_LEVELS.items():
            if (value := level(row)) is not None:
                yield Series(cluster, name, row.component, row.task_id, metric), value
    for component, rows in of_components.items():
        for metric, level in _METRIC_LEVELS.items():
            known = [value for value in map(level, rows) if value is not None]
            if known:
                yield Series(cluster, name, component, 0, metric), _JOINED.get(metric, fmean)(known)


_JOINED: dict[str, Callable[[list[float]], float]] = {"latency-p50-s": max, "latency-p99-s": max, "resident-bytes": sum}


@dataclass(slots=True)
class _Place:
    """What was observed of a topology: when, its leader and since when, and how many tasks were in which totals."""

    observed_at_s: float
    epoch: int
    leads_since_s: float
    figures_at_s: float = float("-inf")
    tasks_at_s: float = float("-inf")
    reported_tasks: dict[str, int] = field(default_factory=dict)


class Increments:
    """The last total of each counter. `gap_s` is the longest time between two totals that belong together.

    The totals of tasks are taken more seldom, so their longest time is as much longer.
    """

    def __init__(self, gap_s: float) -> None:
        self._gap_s = gap_s
        self._last: dict[Series, tuple[str, float, float]] = {}
        self._places: dict[tuple[str, str], _Place] = {}

    def samples(self, topology: ObservedTopology) -> list[Sample]:
        """Return what an observation adds; nothing where a total has no former one."""
        found = []
        run, at_s = topology.entry.id, topology.observed_at_s
        place = self._place(topology)
        learning = at_s - place.leads_since_s < _LEARNS_S
        learned = _learned(place, topology.status)
        for series, value in component_readings(topology):
            if series.metric in _STATUS_LEVELS:
                found.append(Sample(series, value, 1.0))
                continue
            sample = self._increment(series, run, (value, at_s), self._gap_s)
            if sample is not None and not learning and series.component not in learned:
                found.append(sample)
        if topology.figures_at_s != place.figures_at_s:
            place.figures_at_s = topology.figures_at_s
            if place.figures_at_s - place.tasks_at_s >= _TASKS_S:
                place.tasks_at_s = place.figures_at_s
                for series, value in task_readings(topology):
                    sample = self._increment(series, run, (value, place.figures_at_s), self._gap_s + _TASKS_S)
                    if sample is not None and not learning:
                        found.append(sample)
            found += [Sample(series, value, 1.0) for series, value in level_readings(topology)]
        return found

    def forget_before(self, at_s: float) -> None:
        """Forget what was observed before a monotonic time, such as the totals of ended topologies."""
        self._last = {series: last for series, last in self._last.items() if last[2] >= at_s}
        self._places = {place: each for place, each in self._places.items() if each.observed_at_s >= at_s}

    def _place(self, topology: ObservedTopology) -> _Place:
        """Note the observation and its leader.

        The first leader of a run knows all processes. Since when a later one leads is not known at the first
        observation.
        """
        key, now_s = (topology.cluster, topology.name), topology.observed_at_s
        leader = topology.status.leader if topology.status else None
        place = self._places.get(key)
        if place is None:
            epoch = leader.epoch if leader else 0
            place = self._places[key] = _Place(now_s, epoch, now_s if epoch > 1 else float("-inf"))
        elif leader is not None and leader.epoch != place.epoch:
            place.epoch, place.leads_since_s = leader.epoch, now_s
        place.observed_at_s = now_s
        return place

    def _increment(self, series: Series, run: str, seen: tuple[float, float], gap_s: float) -> Sample | None:
        """The growth since the former total; `seen` is the present one and when it was seen."""
        value, at_s = seen
        former = self._last.get(series)
        if former is not None and former[0] == run and at_s <= former[2]:
            return None  # the same observation again
        self._last[series] = (run, value, at_s)
        if former is None or former[0] != run:
            return None
        increment, passed_s = value - former[1], at_s - former[2]
        if increment < 0 or passed_s > gap_s:
            return None
        return Sample(series, increment, passed_s)


def _learned(place: _Place, status: TopologyStatus | None) -> frozenset[str]:
    """The components whose totals have more tasks than before, and so more than what was counted meanwhile."""
    former = place.reported_tasks
    place.reported_tasks = {each.name: each.reported_tasks for each in status.components} if status else {}
    return frozenset(name for name, tasks in place.reported_tasks.items() if tasks > former.get(name, tasks))
