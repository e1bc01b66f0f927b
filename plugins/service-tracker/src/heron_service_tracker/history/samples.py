"""What history keeps of an observation, and the increments of counters. Pure.

A total may become smaller: a process was restarted, or another topology manager leads, which knows only the processes
that run. That total is then a new beginning and no increment, because the time in which it was counted is not known.
The same holds after a gap. So a rate is never negative, and a restart or a gap never makes a spike.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from heron_service_tracker.observed import ObservedTopology

__all__ = ["COUNTERS", "GAUGES", "Increments", "Sample", "Series", "component_readings", "task_readings"]

COUNTERS = ("emit-count", "execute-count", "ack-count", "fail-count")
"""Totals of tuples; history has them per second, of components and of tasks."""

GAUGES = ("queue-bytes", "latency-s")
"""Levels of components."""


@dataclass(frozen=True, slots=True)
class Series:
    """A metric of a component (`task_id` 0) or of a task."""

    cluster: str
    topology: str
    component: str
    task_id: int
    metric: str


@dataclass(frozen=True, slots=True)
class Sample:
    """What one observation adds to a series: the value is `total` divided by `weight`.

    For a counter they are an increment and its seconds; for a gauge the level and 1.
    """

    series: Series
    total: float
    weight: float


def component_readings(topology: ObservedTopology) -> Iterator[tuple[Series, float]]:
    """The totals of counters and the levels of gauges in the status of an observation."""
    cluster, name, status = topology.cluster, topology.name, topology.status
    for each in status.components if status else ():
        values = (each.emitted, each.executed, each.acked, each.failed, each.queue_bytes, each.latency_s)
        for metric, value in zip((*COUNTERS, *GAUGES), values, strict=True):
            yield Series(cluster, name, each.name, 0, metric), float(value)


def task_readings(topology: ObservedTopology) -> Iterator[tuple[Series, float]]:
    """The totals of the counters of tasks in the metrics of an observation."""
    totals: dict[tuple[str, int, str], float] = {}
    for row in topology.metrics:
        if row.task_id and row.name in COUNTERS:
            key = row.component, row.task_id, row.name
            totals[key] = totals.get(key, 0.0) + row.value
    for key, value in totals.items():
        yield Series(topology.cluster, topology.name, *key), value


class Increments:
    """The last total of each counter. `gap_s` is the longest time between two totals that belong together."""

    def __init__(self, gap_s: float) -> None:
        self._gap_s = gap_s
        self._last: dict[Series, tuple[str, float, float]] = {}
        self._metrics_at_s: dict[tuple[str, str], float] = {}

    def samples(self, topology: ObservedTopology) -> list[Sample]:
        """Return what an observation adds; nothing where a total has no former one."""
        found = []
        run, at_s = topology.entry.id, topology.observed_at_s
        for series, value in component_readings(topology):
            if series.metric in GAUGES:
                found.append(Sample(series, value, 1.0))
            elif (sample := self._increment(series, run, value, at_s)) is not None:
                found.append(sample)
        place = topology.cluster, topology.name
        if topology.metrics_at_s != self._metrics_at_s.get(place):
            self._metrics_at_s[place] = topology.metrics_at_s
            for series, value in task_readings(topology):
                if (sample := self._increment(series, run, value, topology.metrics_at_s)) is not None:
                    found.append(sample)
        return found

    def forget_before(self, at_s: float) -> None:
        """Forget the totals that are older than a monotonic time, such as those of ended topologies."""
        self._last = {series: last for series, last in self._last.items() if last[2] >= at_s}
        self._metrics_at_s = {place: last_s for place, last_s in self._metrics_at_s.items() if last_s >= at_s}

    def _increment(self, series: Series, run: str, value: float, at_s: float) -> Sample | None:
        former = self._last.get(series)
        if former is not None and former[0] == run and at_s <= former[2]:
            return None  # the same observation again
        self._last[series] = (run, value, at_s)
        if former is None or former[0] != run:
            return None
        increment, passed_s = value - former[1], at_s - former[2]
        if increment < 0 or passed_s > self._gap_s:
            return None
        return Sample(series, increment, passed_s)
