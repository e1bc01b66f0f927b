"""The newest figures of every process, summed up by component. Pure.

Counters are totals of one incarnation, so a task's figure is the sum over its incarnations of the greatest total that
each has reported: late and repeated records change nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from heron.ipc.metric_names import (
    ACK_COUNT,
    EMIT_COUNT,
    EVENT_FIRST_TUPLE,
    EXECUTE_COUNT,
    EXECUTE_LATENCY,
    FAIL_COUNT,
    IN_QUEUE_BYTES,
    OUTLET_BYTES,
)
from heron.spi.metricsink import Histogram, Metric, MetricsRecord

__all__ = ["ComponentFigures", "MetricsCache"]

_COUNTS = (EMIT_COUNT, EXECUTE_COUNT, ACK_COUNT, FAIL_COUNT)
_RATED = {"spout": EMIT_COUNT, "bolt": EXECUTE_COUNT}
_FRESH_S = 10.0  # a process that has not reported for so long has no rate and no queue


@dataclass(frozen=True, slots=True)
class ComponentFigures:
    """The sums over the tasks of a component."""

    emitted: int = 0
    executed: int = 0
    acked: int = 0
    failed: int = 0
    rate_per_s: float = 0.0
    queue_bytes: int = 0
    latency_s: float = 0.0


class _Life:
    """What one incarnation of a task's process has counted."""

    __slots__ = ("at_s", "counts", "latency_entries", "latency_total_s", "rates")

    def __init__(self) -> None:
        self.at_s = 0.0
        self.counts = dict.fromkeys(_COUNTS, 0.0)
        self.rates = dict.fromkeys(_COUNTS, 0.0)
        self.latency_total_s = 0.0
        self.latency_entries = 0

    def take(self, record: MetricsRecord) -> None:
        counts = dict.fromkeys(_COUNTS, 0.0)
        for metric in record.metrics:
            if metric.name in counts and not isinstance(metric.value, Histogram):
                counts[metric.name] += metric.value
            elif metric.name == EXECUTE_LATENCY and isinstance(metric.value, Histogram):
                self._take_latency(metric.value)
        passed_s = record.at_s - self.at_s
        for name, count in counts.items():
            if passed_s > 0 and self.at_s > 0:
                self.rates[name] = max(0.0, (count - self.counts[name]) / passed_s)
            self.counts[name] = max(self.counts[name], count)
        self.at_s = max(self.at_s, record.at_s)

    def _take_latency(self, histogram: Histogram) -> None:
        entries = sum(histogram.counts)
        if entries >= self.latency_entries:
            self.latency_entries = entries
            self.latency_total_s = histogram.total


class MetricsCache:
    """Figures by task; times are monotonic seconds of arrival, unless they are those of a record."""

    def __init__(self) -> None:
        self._lives: dict[int, dict[int, _Life]] = {}  # task, incarnation
        self._queues: dict[str, tuple[float, dict[int, float]]] = {}  # process: arrival, bytes that wait per task
        self._arrivals: dict[int, float] = {}
        self.first_tuple_at_s: float | None = None

    def take(self, record: MetricsRecord, now_s: float) -> None:
        """Takes a record of any process."""
        source = record.source
        for event in record.events:
            if event.name == EVENT_FIRST_TUPLE:
                self.first_tuple_at_s = min(event.at_s, self.first_tuple_at_s or event.at_s)
        waiting: dict[int, float] = {}
        for metric in record.metrics:
            task_id = _waits_for(metric, source.task_id)
            if task_id and not isinstance(metric.value, Histogram):
                waiting[task_id] = waiting.get(task_id, 0.0) + metric.value
        self._queues[f"{source.container_id}/{source.process}"] = (now_s, waiting)
        if source.task_id:
            lives = self._lives.setdefault(source.task_id, {})
            lives.setdefault(source.incarnation, _Life()).take(record)
            self._arrivals[source.task_id] = now_s

    def figures(self, kind: str, task_ids: Iterable[int], now_s: float) -> ComponentFigures:
        """The sums over these tasks of a ``spout`` or ``bolt``."""
        counts = dict.fromkeys(_COUNTS, 0.0)
        rate = latency_total_s = 0.0
        latency_entries = 0
        tasks = frozenset(task_ids)
        for task_id in tasks:
            lives = self._lives.get(task_id, {})
            for life in lives.values():
                for name in _COUNTS:
                    counts[name] += life.counts[name]
                latency_total_s += life.latency_total_s
                latency_entries += life.latency_entries
            if lives and now_s - self._arrivals[task_id] < _FRESH_S:
                rate += lives[max(lives)].rates[_RATED[kind]]
        return ComponentFigures(
            emitted=round(counts[EMIT_COUNT]),
            executed=round(counts[EXECUTE_COUNT]),
            acked=round(counts[ACK_COUNT]),
            failed=round(counts[FAIL_COUNT]),
            rate_per_s=rate,
            queue_bytes=round(sum(self._waiting(tasks, now_s))),
            latency_s=latency_total_s / latency_entries if latency_entries else 0.0,
        )

    def _waiting(self, tasks: frozenset[int], now_s: float) -> Iterable[float]:
        for arrived_s, waiting in self._queues.values():
            if now_s - arrived_s < _FRESH_S:
                yield from (size for task_id, size in waiting.items() if task_id in tasks)


def _waits_for(metric: Metric, own_task: int) -> int:
    """The task for which the bytes of a queue metric wait; 0 when it is another metric."""
    if metric.name == IN_QUEUE_BYTES:
        return own_task
    if metric.name == OUTLET_BYTES:
        return _task_label(metric.labels)
    return 0


def _task_label(labels: Mapping[str, str]) -> int:
    label = labels.get("task", "")
    return int(label) if label.isdigit() else 0
