"""The parts of the status that are sums, joins and lists. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from heron.api.definition import TopologyDefinition
from heron.ipc.documents.status import ComponentStatus, Culprit, LeaderStatus, ProcessStatus, StandbyStatus
from heron.planner.packing_plan import PackingPlan
from heron.tmanager.leader.back_pressure_reports import BackPressureReports
from heron.tmanager.leader.task_table import TaskTable
from heron.tmanager.metrics.metrics_store import MetricsStore

__all__ = ["ErrorList", "component_statuses", "culprits", "silent_text", "standbys"]

_ERRORS_KEPT = 50  # the logs have all
_ERROR_LENGTH = 4000  # characters


class ErrorList:
    """The newest errors, oldest first; each text once."""

    def __init__(self) -> None:
        self._texts: dict[str, None] = {}

    def add(self, text: str) -> bool:
        """Adds a text; returns whether it is new."""
        text = text[:_ERROR_LENGTH]
        if not text or text in self._texts:
            return False
        self._texts[text] = None
        if len(self._texts) > _ERRORS_KEPT:
            del self._texts[next(iter(self._texts))]
        return True

    def texts(self) -> tuple[str, ...]:
        """The errors that are kept."""
        return tuple(self._texts)


def component_statuses(
    definition: TopologyDefinition,
    packing: PackingPlan,
    former: Mapping[int, str],
    metrics: MetricsStore,
    now_s: float,
) -> tuple[ComponentStatus, ...]:
    """Every component in the order of declaration; `now_s` is monotonic seconds.

    The counts include those of `former` tasks, which an update has removed.
    """
    by_component: dict[str, list[int]] = {component.name: [] for component in definition.components}
    for _, instance in packing.instances():
        by_component.setdefault(instance.component, []).append(instance.task_id)
    found = []
    for component in definition.components:
        task_ids = by_component[component.name]
        counted = (*task_ids, *(task_id for task_id, name in former.items() if name == component.name))
        figures = metrics.figures(component.kind.value, counted, now_s)
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
                reported_tasks=figures.tasks,
                shed=figures.shed,
            )
        )
    return tuple(found)


def culprits(reports: BackPressureReports, tasks: TaskTable) -> tuple[Culprit, ...]:
    """Every culprit of back pressure, by task."""
    found = [
        Culprit(task_id, *tasks.place(task_id), since_s, cause)
        for task_id, (since_s, cause) in sorted(reports.culprits().items())
    ]
    return tuple(found)


def standbys(processes: Iterable[ProcessStatus], leader: LeaderStatus) -> tuple[StandbyStatus, ...]:
    """Every topology manager except the leader, by container."""
    return tuple(
        StandbyStatus(each.container_id, each.pid, each.host, each.state)
        for each in processes
        if each.process == "tmanager" and each.container_id != leader.container_id
    )


def silent_text(container_id: int) -> str:
    """The error for people about a container whose stream manager is silent."""
    return f"the stream manager of container {container_id} is silent; its host or network may hang"
