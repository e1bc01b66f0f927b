"""What the metrics say of each task. Pure.

A task has about thirty metrics, so a thousand tasks take a tenth of a second. The figures are therefore made once, by
the thread that reads the metrics, and requests only look them up. They need half of the metrics.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from heron_cli.client import MetricsRow

__all__ = ["COUNTERS", "FIGURE_METRICS", "FiguresOfTasks", "TaskFigures", "figures_of_tasks", "share"]

COUNTERS = ("emit-count", "execute-count", "ack-count", "fail-count")
"""The totals of tuples."""

FIGURE_METRICS = frozenset(
    {
        *COUNTERS,
        *("task-time-s", "cpu-seconds", "in-queue-bytes", "resident-bytes", "gc-pause-s"),
        *("execute-latency", "complete-latency"),
    }
)
"""The names of the metrics that figures are made of."""

_USEFUL = frozenset({"user-cpu", "user-blocked", "engine"})  # the uses of a task's time that are work


@dataclass(slots=True)
class TaskFigures:
    """What the metrics say of one task; None where nothing was measured."""

    emit_per_s: float | None = None
    execute_per_s: float | None = None
    time: dict[str, float] = field(default_factory=dict)
    cores: float | None = None
    queue_bytes: float | None = None
    resident_bytes: float | None = None
    gc_share: float | None = None
    p50_s: float | None = None
    p99_s: float | None = None
    from_stream: dict[tuple[str, str], float] = field(default_factory=dict)
    totals: dict[str, float] = field(default_factory=dict)

    def take(self, row: MetricsRow) -> None:
        """Add one row of the task."""
        rate = row.rate_per_s
        if row.name in COUNTERS:
            self._count(row)
        elif row.name == "task-time-s" and rate is not None:
            self.time[row.labels.get("use", "")] = share(rate)
        elif row.name == "cpu-seconds":
            self.cores = rate
        elif row.name == "in-queue-bytes":
            self.queue_bytes = row.value
        elif row.name == "resident-bytes":
            self.resident_bytes = row.value
        elif row.name == "gc-pause-s" and rate is not None:
            self.gc_share = share(rate)
        elif row.name in {"execute-latency", "complete-latency"}:
            self.p50_s, self.p99_s = row.p50, row.p99

    def _count(self, row: MetricsRow) -> None:
        self.totals[row.name] = self.totals.get(row.name, 0.0) + row.value
        rate = row.rate_per_s
        if row.name == "emit-count":
            self.emit_per_s = _sum(self.emit_per_s, rate)
        elif row.name == "execute-count":
            self.execute_per_s = _sum(self.execute_per_s, rate)
            if rate is not None:
                key = row.labels.get("component", ""), row.labels.get("stream", "")
                self.from_stream[key] = self.from_stream.get(key, 0.0) + rate

    @property
    def busy(self) -> tuple[float | None, str]:
        """The share of time with work, and how it is known."""
        if self.time:
            return share(sum(self.time.get(use, 0.0) for use in _USEFUL)), "task-time"
        return (None, "") if self.cores is None else (share(self.cores), "processor")


@dataclass(slots=True)
class FiguresOfTasks:
    """The figures by number of the task, and the component of each."""

    by_task: dict[int, TaskFigures] = field(default_factory=dict)
    components: dict[int, str] = field(default_factory=dict)

    def take(self, row: MetricsRow) -> None:
        """Add one row of any metric."""
        if row.task_id and row.name in FIGURE_METRICS:
            if (found := self.by_task.get(row.task_id)) is None:
                found = self.by_task[row.task_id] = TaskFigures()
                self.components[row.task_id] = row.component
            found.take(row)


def figures_of_tasks(rows: Iterable[MetricsRow]) -> FiguresOfTasks:
    """Make the figures of these metrics."""
    found = FiguresOfTasks()
    for row in rows:
        found.take(row)
    return found


def share(value: float) -> float:
    """A share of time, from 0 to 1."""
    return round(min(1.0, max(0.0, value)), 3)


def _sum(former: float | None, value: float | None) -> float | None:
    return former if value is None else (former or 0.0) + value
