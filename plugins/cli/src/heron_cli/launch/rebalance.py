"""Plans a rebalance: measures the tasks of components, and moves key groups from busy tasks to idle ones."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from heron.api.definition import GroupingKind
from heron.clock import monotonic_s
from heron.errors import UsageError, known, nearest
from heron.ipc.documents.metric_names import EXECUTE_COUNT
from heron.ipc.documents.metrics_table import MetricsSeries, MetricsValue
from heron.planner.key_balance import balanced_owners, expected_rates
from heron.planner.key_owners import KeyOwners
from heron.planner.physical_plan import PlanIndex
from heron_cli.topologies.running.remote_topology import RemoteTopology

__all__ = ["Rebalance", "TaskLoad", "measured_rates", "plan_rebalance"]

_MEASURE_S = 5.0
"""Longer than some export periods (`heron.metrics.export.s`), short enough to wait for."""
_LOOK_S = 0.25  # how well the time of a report is known


@dataclass(frozen=True, slots=True)
class TaskLoad:
    """The tuples per second of a task: measured, and expected with its new key groups."""

    task_id: int
    component: str
    now_per_s: float
    expected_per_s: float


@dataclass(frozen=True, slots=True)
class Rebalance:
    """The new owners of key groups, of components in which some move, and the loads of all measured tasks."""

    owners: Mapping[str, KeyOwners]
    loads: tuple[TaskLoad, ...]


def plan_rebalance(index: PlanIndex, topology: RemoteTopology, components: Collection[str]) -> Rebalance:
    """Measure the tasks of these components for some seconds and plan which key groups move; changes nothing.

    Raises:
        UsageError: when a component is unknown, has no fields grouping, or has processed nothing meanwhile.
    """
    for component in components:
        _check(index, component)
    rates = measured_rates(_observed(topology))
    owners, loads = {}, []
    for component in components:
        before = index.key_owners(component)
        mine = {task_id: rates.get(task_id, 0.0) for task_id in index.tasks_of(component)}
        if not any(mine.values()):
            msg = f"component {component!r} has processed no tuple for {_MEASURE_S:g} s, so nothing tells what to move"
            raise UsageError(msg)
        after = balanced_owners(before, mine)
        expected = expected_rates(before, after, mine)
        loads += [TaskLoad(task_id, component, mine[task_id], expected[task_id]) for task_id in sorted(mine)]
        if after != tuple(before):
            owners[component] = KeyOwners.of(after)
    return Rebalance(owners, tuple(loads))


def _check(index: PlanIndex, component: str) -> None:
    names = {each.name for each in index.plan.topology.components}
    if component not in names:
        msg = f"--rebalance {component!r}: no such component{nearest(component, names)}; known: {known(names)}"
        raise UsageError(msg)
    inputs = index.plan.topology.component(component).inputs
    if not any(each.grouping.kind is GroupingKind.FIELDS for each in inputs):
        msg = f"--rebalance {component!r}: no input has a fields grouping, so its tasks own no key groups"
        raise UsageError(msg)
    if len(index.tasks_of(component)) == 1:
        msg = f"--rebalance {component!r}: it has one task, which owns all key groups; add tasks"
        raise UsageError(msg)


def measured_rates(observations: Sequence[tuple[float, Mapping[int, float]]]) -> dict[int, float]:
    """Return the tuples per second of each task, of its totals at these times in seconds.

    A total is as old as the last report of its task. So the time between the first and the last change counts; with a
    single change, the whole time. A task that restarts meanwhile counts from its restart.
    """
    begin_s, first = observations[0]
    whole_s = observations[-1][0] - begin_s
    changes = {task_id: [(begin_s, count)] for task_id, count in first.items()}
    for at_s, counts in observations[1:]:
        for task_id, count in counts.items():
            of_task = changes.setdefault(task_id, [(begin_s, 0.0)])
            if count < of_task[-1][1]:
                of_task[:] = [(begin_s, 0.0)]
            if count != of_task[-1][1]:
                of_task.append((at_s, count))
    return {task_id: _rate(of_task, whole_s) for task_id, of_task in changes.items()}


def _rate(changes: Sequence[tuple[float, float]], whole_s: float) -> float:
    """The first of the changes is the total at the beginning, whose age is unknown."""
    if len(changes) <= 2:
        return (changes[-1][1] - changes[0][1]) / whole_s
    (begin_s, before), (end_s, after) = changes[1], changes[-1]
    return (after - before) / (end_s - begin_s)


def _observed(topology: RemoteTopology) -> list[tuple[float, Mapping[int, float]]]:
    found: list[tuple[float, Mapping[int, float]]] = [(monotonic_s(), _counts(topology))]
    while found[-1][0] < found[0][0] + _MEASURE_S:
        threading.Event().wait(_LOOK_S)
        found.append((monotonic_s(), _counts(topology)))
    return found


class _Counts:
    """Adds up the tuples that each task has executed."""

    def __init__(self) -> None:
        self.by_task: dict[int, float] = {}

    def of_owner(self, component: str, task_id: int, process: str) -> int | None:
        del component, process
        return task_id or None

    def of_series(self, series: MetricsSeries) -> Callable[[int, MetricsValue], None] | None:
        return self._add if series.name == EXECUTE_COUNT else None

    def _add(self, task_id: int, measured: MetricsValue) -> None:
        self.by_task[task_id] = self.by_task.get(task_id, 0.0) + measured.value


def _counts(topology: RemoteTopology) -> dict[int, float]:
    counts = _Counts()
    topology.read_task_metrics((EXECUTE_COUNT,), counts)
    return counts.by_task
