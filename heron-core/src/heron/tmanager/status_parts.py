"""The parts of the status that are sums and joins. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from heron.api.definition import TopologyDefinition
from heron.ipc.status import ComponentStatus, Culprit, LeaderStatus, ProcessStatus, StandbyStatus
from heron.planner.packing_plan import PackingPlan
from heron.tmanager.metrics_cache import MetricsCache
from heron.tmanager.pressure_board import PressureBoard
from heron.tmanager.task_table import TaskTable

__all__ = ["component_statuses", "culprits", "standbys"]


def component_statuses(
    definition: TopologyDefinition, packing: PackingPlan, metrics: MetricsCache, now_s: float
) -> tuple[ComponentStatus, ...]:
    """Every component in the order of its declaration, at a moment (monotonic seconds)."""
    by_component: dict[str, list[int]] = {component.name: [] for component in definition.components}
    for _, instance in packing.instances():
        by_component.setdefault(instance.component, []).append(instance.task_id)
    found = []
    for component in definition.components:
        task_ids = by_component[component.name]
        figures = metrics.figures(component.kind.value, task_ids, now_s)
        found.append(
            ComponentStatus(
                name=component.name,
                kind=component.kind.value,
                parallelism=len(task_ids),
                emitted=figures.emitted,
                executed=figures.executed,
                acked=figures.acked,
                failed=figures.failed,
                rate_per_s=figures.rate_per_s,
                queue_bytes=figures.queue_bytes,
                latency_s=figures.latency_s,
            )
        )
    return tuple(found)


def culprits(pressure: PressureBoard, tasks: TaskTable) -> tuple[Culprit, ...]:
    """Every culprit of back pressure, by task."""
    found = [
        Culprit(task_id, *tasks.place(task_id), since_s, cause)
        for task_id, (since_s, cause) in sorted(pressure.culprits().items())
    ]
    return tuple(found)


def standbys(processes: Iterable[ProcessStatus], leader: LeaderStatus) -> tuple[StandbyStatus, ...]:
    """Every topology manager but the one that leads, by container."""
    return tuple(
        StandbyStatus(each.container_id, each.pid, each.host, each.state)
        for each in processes
        if each.process == "tmanager" and each.container_id != leader.container_id
    )
