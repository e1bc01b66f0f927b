"""What history keeps of an observation, and the increments of counters. Pure.

A total may become smaller: a process was restarted, or another topology manager leads, which knows only the processes
that run. That total is then a new beginning and no increment, because the time in which it was counted is not known.
The same holds after a gap, and while a new leader learns the totals of one process after the other: in its first
seconds, and later for the components whose totals have a task more. A total that is missing once has no increment then
and at the next time. So a rate is never negative, and neither a restart nor a gap makes a spike.
"""

from __future__ import annotations

import logging
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import NamedTuple

from heron_cli.client import TopologyStatus
from heron_service_tracker.history.series import (
    COMPONENT_LEVELS,
    MOST_OF_AUTHORS,
    STATUS_LEVELS,
    TASK_LEVELS,
    GroupValues,
    SeriesGroup,
)
from heron_service_tracker.observed.engine_metrics import ENGINE_JOINS, ENGINE_SERIES, MANAGER_SERIES
from heron_service_tracker.observed.observed import ObservedTopology
from heron_service_tracker.observed.task_figures import COUNTERS, TaskFigures

__all__ = ["Increments", "Sample", "component_readings", "level_readings", "task_readings"]

_TASKS_S = 15.0  # between two totals of a task, whose buckets have a minute; figures come every 10 s, or every second
_LEARNS_S = 10.0  # a process reports its totals every second; one that is started again takes some

_NOTHING = TaskFigures()

_log = logging.getLogger(__name__)


class Sample(NamedTuple):
    """What one observation adds to the series of a group: the value of each is its total divided by `weight`.

    For counters they are increments and their seconds; for levels the levels and 1.
    """

    group: SeriesGroup
    totals: GroupValues
    weight: float


def component_readings(topology: ObservedTopology) -> Iterator[tuple[str, GroupValues, GroupValues]]:
    """The components in the status of an observation: the totals of their counters, and their levels."""
    status = topology.status
    if status is None:
        return
    culprits = {each.component for each in status.backpressure}
    restarts: defaultdict[str, int] = defaultdict(int)
    for task in status.tasks:
        if task.restarts:
            restarts[task.component] += task.restarts
    for each in status.components:
        totals = each.emitted, each.executed, each.acked, each.failed
        yield each.name, totals, (each.queue_bytes, each.latency_s, each.name in culprits, restarts[each.name])


def task_readings(topology: ObservedTopology) -> Iterator[tuple[SeriesGroup, GroupValues]]:
    """The totals of the counters of tasks in the metrics of an observation."""
    cluster, name, figures = topology.cluster, topology.name, topology.figures
    for task_id, of_task in figures.by_task.items():
        group = SeriesGroup(cluster, name, figures.components[task_id], task_id, COUNTERS)
        yield group, [of_task.totals.get(metric) for metric in COUNTERS]


def level_readings(topology: ObservedTopology) -> Iterator[tuple[SeriesGroup, GroupValues]]:
    """The levels of tasks and components in the metrics of an observation: of the tasks in its status."""
    cluster, name, status, figures = topology.cluster, topology.name, topology.status, topology.figures.by_task
    if status is None:
        return
    culprits = {each.task_id for each in status.backpressure}
    of_components: defaultdict[str, list[GroupValues]] = defaultdict(list)
    for task in status.tasks:
        known = figures.get(task.task_id, _NOTHING)
        busy, _ = known.busy
        pressing = 1.0 if task.task_id in culprits else 0.0
        of_components[task.component].append((busy, known.gc_share, known.p50_s, known.p99_s, known.resident_bytes))
        group = SeriesGroup(cluster, name, task.component, task.task_id, TASK_LEVELS)
        yield group, (pressing, busy, known.p99_s, known.resident_bytes)
    for component, rows in of_components.items():
        joined = map(_joined, _JOINS, zip(*rows, strict=True))
        yield SeriesGroup(cluster, name, component, 0, COMPONENT_LEVELS), list(joined)


def _joined(join: Callable[[Sequence[float]], float], values: GroupValues) -> float | None:
    known = [value for value in values if value is not None]
    return join(known) if known else None


_JOINS: tuple[Callable[[Sequence[float]], float], ...] = (fmean, fmean, max, max, sum)
"""What a component has of the levels of its tasks, in the order of `COMPONENT_LEVELS`."""


@dataclass(slots=True)
class _Place:
    """What was observed of a topology: when, its leader and since when, and how many tasks were in which totals."""

    observed_at_s: float
    epoch: int
    leads_since_s: float
    figures_at_s: float = float("-inf")
    tasks_at_s: float = float("-inf")
    reported_tasks: dict[str, int] = field(default_factory=dict)
    of_authors: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    of_engine: defaultdict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    too_many: set[str] = field(default_factory=set)


class Increments:
    """The last total of each counter. `gap_s` is the longest time between two totals that belong together.

    The totals of tasks are taken more seldom, so their longest time is as much longer.
    """

    def __init__(self, gap_s: float) -> None:
        self._gap_s = gap_s
        self._last: dict[SeriesGroup, tuple[str, GroupValues, float]] = {}
        self._places: dict[tuple[str, str], _Place] = {}

    def samples(self, topology: ObservedTopology) -> list[Sample]:
        """Return what an observation adds; nothing where a total has no former one."""
        found = []
        run, at_s = topology.entry.id, topology.observed_at_s
        place = self._place(topology)
        learning = at_s - place.leads_since_s < _LEARNS_S
        learned = _learned(place, topology.status)
        for component, totals, levels in component_readings(topology):
            group = SeriesGroup(topology.cluster, topology.name, component, 0, COUNTERS)
            sample = self._increments(group, run, (totals, at_s), self._gap_s)
            if sample is not None and not learning and component not in learned:
                found.append(sample)
            found.append(Sample(group._replace(metrics=STATUS_LEVELS), levels, 1.0))
        if topology.figures_at_s != place.figures_at_s:
            place.figures_at_s = topology.figures_at_s
            if place.figures_at_s - place.tasks_at_s >= _TASKS_S:
                place.tasks_at_s = place.figures_at_s
                for group, totals in task_readings(topology):
                    sample = self._increments(group, run, (totals, place.figures_at_s), self._gap_s + _TASKS_S)
                    if sample is not None and not learning:
                        found.append(sample)
            found += [Sample(group, levels, 1.0) for group, levels in level_readings(topology)]
            found += [*_of_authors(topology, place), *_of_engine(topology, place), *_of_managers(topology, place)]
        return found

    def forget_before(self, at_s: float) -> None:
        """Forget what was observed before a monotonic time, such as the totals of ended topologies."""
        self._last = {group: last for group, last in self._last.items() if last[2] >= at_s}
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

    def _increments(self, group: SeriesGroup, run: str, seen: tuple[GroupValues, float], gap_s: float) -> Sample | None:
        """The growth since the former totals; `seen` are the present ones and when they were seen."""
        totals, at_s = seen
        former = self._last.get(group)
        if former is not None and former[0] == run and at_s <= former[2]:
            return None  # the same observation again
        self._last[group] = (run, totals, at_s)
        if former is None or former[0] != run or at_s - former[2] > gap_s:
            return None
        return Sample(group, list(map(_grown, totals, former[1])), at_s - former[2])


def _of_authors(topology: ObservedTopology, place: _Place) -> Iterator[Sample]:
    """The authors' own metrics of the tasks in the status, and their sums of each component."""
    sums: defaultdict[tuple[str, str], float] = defaultdict(float)
    for task in topology.status.tasks if topology.status else ():
        known = place.of_authors[task.component]
        for name, value in (topology.figures.by_task.get(task.task_id, _NOTHING).own or {}).items():
            if not math.isfinite(value):
                continue
            if name not in known and len(known) >= MOST_OF_AUTHORS:
                _warn_once(topology, place, task.component)
                continue
            known.add(name)
            sums[task.component, name] += value
            yield Sample(
                SeriesGroup(topology.cluster, topology.name, task.component, task.task_id, (name,)), (value,), 1.0
            )
    for (component, name), total in sums.items():
        yield Sample(SeriesGroup(topology.cluster, topology.name, component, 0, (name,)), (total,), 1.0)


def _of_engine(topology: ObservedTopology, place: _Place) -> Iterator[Sample]:
    """The engine's metrics by name, of tasks and components. A series begins with a value that is not 0."""
    rows: defaultdict[str, list[tuple[int, GroupValues]]] = defaultdict(list)
    for task in topology.status.tasks if topology.status else ():
        measured = topology.figures.by_task.get(task.task_id, _NOTHING).engine
        if measured is not None:
            rows[task.component].append((task.task_id, _begun(measured, place.of_engine[task.component])))
    for component, of_tasks in rows.items():
        columns = zip(*(values for _, values in of_tasks), strict=True)
        joined = list(map(_joined, ENGINE_JOINS, columns))
        for task_id, values in [(0, joined), *of_tasks]:
            yield Sample(SeriesGroup(topology.cluster, topology.name, component, task_id, ENGINE_SERIES), values, 1.0)


def _of_managers(topology: ObservedTopology, place: _Place) -> Iterator[Sample]:
    """The metrics of stream managers by name, each as a component; one that has the name of a component has none."""
    components = {each.name for each in topology.status.components} if topology.status else set()
    for process, figures in topology.figures.managers.items():
        if process not in components:
            values = _begun(figures.engine or (), place.of_engine[process])
            yield Sample(SeriesGroup(topology.cluster, topology.name, process, 0, MANAGER_SERIES), values, 1.0)


def _begun(measured: GroupValues, began: set[int]) -> GroupValues:
    """The values of the series that had one that is not 0; `began` are their places."""
    began.update(number for number, value in enumerate(measured) if value)
    return [value if number in began else None for number, value in enumerate(measured)]


def _warn_once(topology: ObservedTopology, place: _Place, component: str) -> None:
    if component not in place.too_many:
        place.too_many.add(component)
        text = "%s/%s: the history keeps the first %d metrics of its author of %s; a sink keeps all"
        _log.warning(text, topology.cluster, topology.name, MOST_OF_AUTHORS, component)


def _grown(total: float | None, former: float | None) -> float | None:
    """The increment of a counter; None where a total is missing, or is a new beginning."""
    return None if total is None or former is None or total < former else total - former


def _learned(place: _Place, status: TopologyStatus | None) -> frozenset[str]:
    """The components whose totals have more tasks than before, and so more than what was counted meanwhile."""
    former = place.reported_tasks
    place.reported_tasks = {each.name: each.reported_tasks for each in status.components} if status else {}
    return frozenset(name for name, tasks in place.reported_tasks.items() if tasks > former.get(name, tasks))
