"""What the metrics say of each task. Pure.

A task has about thirty metrics, so a thousand tasks take a tenth of a second. The figures are therefore made once, by
the thread that reads the metrics, and requests only look them up. They need half of the metrics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from sys import intern

import msgspec

from heron.spi.metricsink import OF_AUTHORS
from heron_cli.client import MetricsRow, MetricsSeries, MetricsValue
from heron_service_tracker.observed.engine_metrics import (
    ENGINE_METRICS,
    ENGINE_SERIES,
    MANAGER_METRICS,
    MANAGER_SERIES,
    is_manager,
    place_of,
)

__all__ = [
    "COUNTERS",
    "FIGURE_METRICS",
    "KEPT_METRICS",
    "FiguresOfTasks",
    "LargeTask",
    "TaskFigures",
    "figures_of_tasks",
    "median_without",
    "share",
]

COUNTERS = ("emit-count", "execute-count", "ack-count", "fail-count")
"""The totals of tuples."""

_Measured = MetricsValue | MetricsRow
_Take = Callable[["TaskFigures", _Measured], None]
_OfLabels = Callable[[Mapping[str, str]], _Take]

_EXCESS_BYTES = 16 << 20  # processes with the same code differ by some MiB
_USEFUL = ("user-cpu", "user-blocked", "engine")  # the uses of a task's time that are work


class TaskFigures(msgspec.Struct, gc=False):
    """What the metrics say of one task; None where nothing was measured."""

    emit_per_s: float | None = None
    execute_per_s: float | None = None
    time: dict[str, float] = msgspec.field(default_factory=dict)
    cores: float | None = None
    queue_bytes: float | None = None
    resident_bytes: float | None = None
    gc_share: float | None = None
    p50_s: float | None = None
    p99_s: float | None = None
    from_stream: dict[tuple[str, str], float] = msgspec.field(default_factory=dict)
    totals: dict[str, float] = msgspec.field(default_factory=dict)
    own: dict[str, float] | None = None
    """The metrics of authors, which only the history keeps."""
    engine: list[float | None] | None = None
    """The metrics of the engine that only the history keeps, in the order of `ENGINE_SERIES`."""

    @property
    def busy(self) -> tuple[float | None, str]:
        """The share of time with work, and how it is known."""
        if self.time:
            return share(sum([self.time.get(use, 0.0) for use in _USEFUL])), "task-time"
        return (None, "") if self.cores is None else (share(self.cores), "processor")


@dataclass(frozen=True, slots=True)
class LargeTask:
    """The largest task of a component, where the others, with the same code, need much less memory."""

    component: str
    task_id: int
    resident_bytes: float
    usual_bytes: float


@dataclass(slots=True)
class FiguresOfTasks:
    """The figures by number of the task, and the component of each.

    With `keeps`, also what only the history needs, such as the values of stream managers by name.
    """

    by_task: dict[int, TaskFigures] = field(default_factory=dict)
    components: dict[int, str] = field(default_factory=dict)
    managers: dict[str, TaskFigures] = field(default_factory=dict)
    keeps: bool = field(default=True, compare=False, repr=False)
    _large: tuple[LargeTask, ...] | None = field(default=None, compare=False, repr=False)

    def of_owner(self, component: str, task_id: int, process: str) -> TaskFigures | None:
        """Return the figures of a task, or of a stream manager for the history; None of others. See `MetricsReader`."""
        if not task_id:
            return self._of_manager(process) if self.keeps and is_manager(process) else None
        self._large = None
        if (found := self.by_task.get(task_id)) is None:
            found = self.by_task[task_id] = TaskFigures()
            self.components[task_id] = component
        return found

    def of_series(self, series: MetricsSeries) -> _Take | None:
        """Return what adds values of a series to the figures of a task; None if no figure needs the series."""
        if series.name.startswith(OF_AUTHORS):
            return _taking_own(series.name)
        of_labels = _TAKES.get(series.name)
        take = of_labels and of_labels(series.labels)
        place = place_of(series.name, series.labels) if self.keeps else None
        return take if place is None else _taking_of_engine(place, is_counter=series.kind == "counter", take=take)

    def _of_manager(self, process: str) -> TaskFigures:
        if process not in self.managers:
            self.managers[process] = TaskFigures(engine=[None] * len(MANAGER_SERIES))
        return self.managers[process]

    def large_tasks(self) -> tuple[LargeTask, ...]:
        """The task of each component that has twice the memory of its others; looked for once, as each list asks."""
        if self._large is None:
            self._large = tuple(_large_tasks(self))
        return self._large


def figures_of_tasks(rows: Iterable[MetricsRow]) -> FiguresOfTasks:
    """Make the figures of these metrics."""
    found = FiguresOfTasks()
    takes: dict[tuple[str, int], tuple[_Take | None, object]] = {}
    for row in rows:
        key = row.name, id(row.labels)  # rows of one series share their labels
        if key not in takes:
            take = found.of_series(MetricsSeries(row.name, row.kind, row.unit, row.labels))
            takes[key] = take, row.labels  # which keep their identity as long as they exist
        take, _ = takes[key]
        if take is not None and (of_task := found.of_owner(row.component, row.task_id, row.process)) is not None:
            take(of_task, row)
    return found


def _large_tasks(figures: FiguresOfTasks) -> Iterator[LargeTask]:
    of_component: dict[str, list[tuple[float, int]]] = {}
    for task_id, of_task in figures.by_task.items():
        if of_task.resident_bytes is not None:
            of_component.setdefault(figures.components[task_id], []).append((of_task.resident_bytes, task_id))
    for name, tasks in of_component.items():
        ordered = sorted(tasks)
        size, task_id = ordered[-1]
        usual = median_without([each for each, _ in ordered], size)
        if usual is not None and size > 2 * usual and size > usual + _EXCESS_BYTES:
            yield LargeTask(name, task_id, size, usual)


def share(value: float) -> float:
    """A share of time, from 0 to 1."""
    return round(value, 3) if 0.0 <= value <= 1.0 else float(value > 1.0)


def median_without(ordered: Sequence[float], one: float) -> float | None:
    """The lower median of the values in ascending order, but one of them; None without others."""
    middle = len(ordered) // 2 - 1
    if middle < 0:
        return None
    return ordered[middle] if ordered[middle] < one else ordered[middle + 1]


def _adding_count(metric: str) -> _OfLabels:
    def of_labels(_: Mapping[str, str]) -> _Take:
        def take(figures: TaskFigures, measured: _Measured) -> None:
            figures.totals[metric] = figures.totals.get(metric, 0.0) + measured.value

        return take

    return of_labels


def _adding_emitted(labels: Mapping[str, str]) -> _Take:
    count = _adding_count("emit-count")(labels)

    def take(figures: TaskFigures, measured: _Measured) -> None:
        count(figures, measured)
        if measured.rate_per_s is not None:
            figures.emit_per_s = (figures.emit_per_s or 0.0) + measured.rate_per_s

    return take


def _adding_executed(labels: Mapping[str, str]) -> _Take:
    count, source = _adding_count("execute-count")(labels), (labels.get("component", ""), labels.get("stream", ""))

    def take(figures: TaskFigures, measured: _Measured) -> None:
        count(figures, measured)
        if (rate := measured.rate_per_s) is not None:
            figures.execute_per_s = (figures.execute_per_s or 0.0) + rate
            figures.from_stream[source] = figures.from_stream.get(source, 0.0) + rate

    return take


def _adding_time(labels: Mapping[str, str]) -> _Take:
    use = intern(labels.get("use", ""))

    def take(figures: TaskFigures, measured: _Measured) -> None:
        if measured.rate_per_s is not None:
            figures.time[use] = share(measured.rate_per_s)

    return take


def _take_cores(figures: TaskFigures, measured: _Measured) -> None:
    figures.cores = measured.rate_per_s


def _take_queue(figures: TaskFigures, measured: _Measured) -> None:
    figures.queue_bytes = measured.value


def _take_memory(figures: TaskFigures, measured: _Measured) -> None:
    figures.resident_bytes = measured.value


def _take_garbage(figures: TaskFigures, measured: _Measured) -> None:
    if measured.rate_per_s is not None:
        figures.gc_share = share(measured.rate_per_s)


def _take_latency(figures: TaskFigures, measured: _Measured) -> None:
    figures.p50_s, figures.p99_s = measured.p50, measured.p99


def _taking_own(name: str) -> _Take:
    def take(figures: TaskFigures, measured: _Measured) -> None:
        if figures.own is None:
            figures.own = {}
        figures.own[name] = measured.value

    return take


def _taking_of_engine(place: int, *, is_counter: bool, take: _Take | None) -> _Take:
    """Return what keeps a value for the history, after what the figures need of it."""

    def take_both(figures: TaskFigures, measured: _Measured) -> None:
        if take is not None:
            take(figures, measured)
        value = measured.rate_per_s if is_counter else measured.value
        if value is not None:
            if figures.engine is None:
                figures.engine = [None] * len(ENGINE_SERIES)
            if place < len(figures.engine):  # a task may report what is kept of stream managers only
                figures.engine[place] = (figures.engine[place] or 0.0) + value

    return take_both


_TAKES: Mapping[str, _OfLabels] = {
    "emit-count": _adding_emitted,
    "execute-count": _adding_executed,
    "ack-count": _adding_count("ack-count"),
    "fail-count": _adding_count("fail-count"),
    "task-time-s": _adding_time,
    "cpu-seconds": lambda _: _take_cores,
    "in-queue-bytes": lambda _: _take_queue,
    "resident-bytes": lambda _: _take_memory,
    "gc-pause-s": lambda _: _take_garbage,
    "execute-latency": lambda _: _take_latency,
    "complete-latency": lambda _: _take_latency,
}
"""What the values of each metric add to the figures of a task, by the labels of their series."""

FIGURE_METRICS = frozenset((*_TAKES, OF_AUTHORS))
"""The names of the metrics that figures are made of, with all of authors."""

KEPT_METRICS = FIGURE_METRICS | ENGINE_METRICS.keys() | MANAGER_METRICS
"""Those, and the others that the history keeps."""
