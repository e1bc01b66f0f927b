"""Plans a rebalance: measures the tasks of components, and moves key groups from busy tasks to idle ones."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from heron.api.definition import GroupingKind
from heron.errors import UsageError, known, nearest
from heron.ipc.documents.metric_names import EXECUTE_COUNT
from heron.planner.key_balance import balanced_owners, expected_rates
from heron.planner.key_owners import KeyOwners
from heron.planner.physical_plan import PlanIndex
from heron_cli.topologies.running.remote_topology import RemoteTopology

__all__ = ["Rebalance", "TaskLoad", "plan_rebalance"]

_MEASURE_S = 5.0
"""Longer than some export periods (`heron.metrics.export.s`), short enough to wait for."""


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
    rates = _rates(topology)
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


def _rates(topology: RemoteTopology) -> dict[int, float]:
    """Return the tuples per second of each task; a task that restarts meanwhile counts from its restart."""
    before = _counts(topology)
    threading.Event().wait(_MEASURE_S)
    counts = _counts(topology)
    done = {task_id: count - before.get(task_id, 0.0) for task_id, count in counts.items()}
    return {task_id: (count if count >= 0 else counts[task_id]) / _MEASURE_S for task_id, count in done.items()}


def _counts(topology: RemoteTopology) -> dict[int, float]:
    counts: dict[int, float] = {}
    for row in topology.metrics(by_task=True):
        if row.name == EXECUTE_COUNT:
            counts[row.task_id] = counts.get(row.task_id, 0.0) + row.value
    return counts
