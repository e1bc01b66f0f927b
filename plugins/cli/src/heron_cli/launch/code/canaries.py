"""A share of the tasks gets new code first: which tasks, what they do for a time, and what follows from it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace

from heron.clock import monotonic_s
from heron.ipc.documents.metric_names import (
    CPU_WAIT,
    EMIT_COUNT,
    EXECUTE_COUNT,
    FAIL_COUNT,
    IN_QUEUE_BYTES,
    TASK_TIME,
    USER_ERROR_COUNT,
)
from heron.ipc.documents.metrics_table import MetricsSeries, MetricsValue
from heron.planner.packing_plan import PackingPlan
from heron_cli.launch.code.task_health import TaskCounts
from heron_cli.topologies.running.remote_topology import RemoteTopology

__all__ = ["chosen_canaries", "counted", "observed"]

_NAMES = (CPU_WAIT, EMIT_COUNT, EXECUTE_COUNT, FAIL_COUNT, IN_QUEUE_BYTES, TASK_TIME, USER_ERROR_COUNT)
_USEFUL = frozenset({"user-cpu", "user-blocked", "engine"})
_LOOK_S = 0.25
_WARM_S = 1.0  # a new task imports, and reads what it has restored


def chosen_canaries(packing: PackingPlan, components: Collection[str], share: float) -> tuple[int, ...]:
    """Return the tasks that change first: this share of the tasks of each component, at least one."""
    found: list[int] = []
    for component in components:
        tasks = [each.task_id for _, each in packing.instances() if each.component == component]
        found += sorted(tasks)[-max(1, round(share * len(tasks))) :]
    return tuple(sorted(found))


def counted(topology: RemoteTopology, spouts: Collection[str]) -> dict[int, TaskCounts]:
    """Return what each task has done since it started; `spouts` are the names of the components that are spouts."""
    counts = _Counts(spouts)
    topology.read_task_metrics(_NAMES, counts)
    restarts = {each.task_id: float(each.restarts) for each in topology.status().tasks}
    return {task: replace(each, restarts=restarts.get(task, 0.0)) for task, each in counts.by_task.items()}


def observed(
    count: Callable[[], dict[int, TaskCounts]], seconds: float, goes_on: Callable[[], bool]
) -> dict[int, TaskCounts]:
    """Return what each task does in this time, without the first second; earlier if `goes_on` returns false."""
    began_s = monotonic_s()
    _wait(began_s + min(_WARM_S, seconds / 2), goes_on)
    before = count()
    _wait(began_s + seconds, goes_on)
    return _differences(before, count())


def _wait(until_s: float, goes_on: Callable[[], bool]) -> None:
    pause = threading.Event()
    while (left_s := until_s - monotonic_s()) > 0 and goes_on():
        pause.wait(min(left_s, _LOOK_S))


def _differences(before: Mapping[int, TaskCounts], after: Mapping[int, TaskCounts]) -> dict[int, TaskCounts]:
    return {task: each.since(before.get(task, TaskCounts())) for task, each in after.items()}


class _Counts:
    """Adds up the metrics of each task."""

    def __init__(self, spouts: Iterable[str]) -> None:
        self._spouts = frozenset(spouts)
        self.by_task: dict[int, TaskCounts] = {}

    def of_owner(self, component: str, task_id: int, process: str) -> tuple[int, bool] | None:
        del process
        return (task_id, component in self._spouts) if task_id else None

    def of_series(self, series: MetricsSeries) -> Callable[[tuple[int, bool], MetricsValue], None] | None:
        if series.name == TASK_TIME:
            useful = series.labels.get("use") in _USEFUL
            return lambda task, each: self._add(task, seconds=each.value, useful_s=each.value if useful else 0.0)
        if series.name in {EMIT_COUNT, EXECUTE_COUNT}:
            of_spouts = series.name == EMIT_COUNT
            return lambda task, each: self._add(task, tuples=each.value if task[1] is of_spouts else 0.0)
        if series.name == CPU_WAIT:
            return lambda task, each: self._add(task, useful_s=-each.value)
        name = {FAIL_COUNT: "failed", USER_ERROR_COUNT: "errors", IN_QUEUE_BYTES: "waiting_bytes"}.get(series.name)
        return (lambda task, each: self._add(task, **{name: each.value})) if name else None

    def _add(self, task: tuple[int, bool], **values: float) -> None:
        self.by_task[task[0]] = self.by_task.get(task[0], TaskCounts()) + TaskCounts(**values)
