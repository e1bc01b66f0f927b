"""The newest metrics of every process, their rates, and the sums over components. Pure.

The store keeps the last two records of each process. Rates and quantiles are those between these two records. A process
that has not reported for some export periods is stale: it keeps its totals, but has no rates and no gauges.

Counters are totals of one incarnation. The figures of a component are sums over all incarnations of its tasks, each
with the greatest total that it has reported. So late and repeated records change nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from heron.ipc.documents.metric_names import (
    ACK_COUNT,
    EMIT_COUNT,
    EVENT_FIRST_TUPLE,
    EXECUTE_COUNT,
    EXECUTE_LATENCY,
    FAIL_COUNT,
    IN_QUEUE_BYTES,
    OUTLET_BYTES,
    PEER_SILENT,
    SHED_COUNT,
    SINK_OUTAGE,
)
from heron.ipc.documents.metrics_table import MetricsOwner, MetricsSeries, MetricsTable, MetricsValue
from heron.ipc.documents.status import SinkOutage, Unreached
from heron.spi.metricsink import OF_AUTHORS, Histogram, Metric, MetricKind, MetricsRecord, Source

__all__ = ["ComponentFigures", "MetricsStore", "quantile"]

_COUNTS = (EMIT_COUNT, EXECUTE_COUNT, ACK_COUNT, FAIL_COUNT, SHED_COUNT)
_RATED = {"spout": EMIT_COUNT, "bolt": EXECUTE_COUNT}

_MOST_OF_AUTHORS = 33  # of a task: a metric with a value for each key may have thousands
_STALE_PERIODS = 3  # one lost record does not make a process stale
_MIN_FRESH_S = 10.0  # with short periods a busy process may miss several

_Process = tuple[int, str]  # container, process
_Labels = tuple[tuple[str, str], ...]
_Owner = tuple[str, int, str]  # component, task, process
_Series = tuple[str, str, str, _Labels]  # name, kind, unit, labels


@dataclass(frozen=True, slots=True)
class ComponentFigures:
    """The sums over the tasks of a component; `tasks` is the number of those that have reported."""

    emitted: int = 0
    executed: int = 0
    acked: int = 0
    failed: int = 0
    rate_per_s: float = 0.0
    queue_bytes: int = 0
    latency_s: float = 0.0
    tasks: int = 0
    shed: int = 0


@dataclass(slots=True)
class _Reports:
    """The newest record of a process, the one before it in the same incarnation, and when the newest arrived."""

    newest: MetricsRecord
    before: MetricsRecord | None
    arrived_s: float
    waiting: dict[int, float]  # bytes that wait for each task
    rates: dict[str, float]  # of `_COUNTS`, without labels


class _Totals:
    """The greatest totals of one incarnation of a task."""

    __slots__ = ("counts", "latency_entries", "latency_total_s")

    def __init__(self) -> None:
        self.counts = dict.fromkeys(_COUNTS, 0.0)
        self.latency_total_s = 0.0
        self.latency_entries = 0

    def take(self, record: MetricsRecord) -> None:
        for name, count in _counts(record).items():
            self.counts[name] = max(self.counts[name], count)
        for metric in record.metrics:
            if metric.name == EXECUTE_LATENCY and isinstance(metric.value, Histogram):
                entries = sum(metric.value.counts)
                if entries >= self.latency_entries:
                    self.latency_entries, self.latency_total_s = entries, metric.value.total


class _Sum:
    """One row while it is summed up."""

    __slots__ = ("bounds", "counts", "rate", "value")

    def __init__(self) -> None:
        self.value = 0.0
        self.rate: float | None = None
        self.bounds: tuple[float, ...] = ()
        self.counts: list[int] = []  # between the last two records, by bucket

    def add(self, metric: Metric, before: Metric | None, passed_s: float) -> None:
        value = _amount(metric)
        self.value += value
        if metric.kind is MetricKind.GAUGE or before is None or passed_s <= 0:
            return
        self.rate = (self.rate or 0.0) + max(0.0, value - _amount(before)) / passed_s
        if isinstance(metric.value, Histogram) and isinstance(before.value, Histogram):
            self._add_counts(metric.value, before.value)

    def _add_counts(self, now: Histogram, before: Histogram) -> None:
        if now.bounds != before.bounds or (self.counts and self.bounds != now.bounds):
            return  # the author's code has changed its buckets
        self.bounds = now.bounds
        self.counts = self.counts or [0] * len(now.counts)
        for index, (count, former) in enumerate(zip(now.counts, before.counts, strict=True)):
            self.counts[index] += max(0, count - former)


class MetricsStore:
    """The metrics of one topology; `now_s` is monotonic seconds."""

    def __init__(self, export_period_s: float) -> None:
        self._fresh_s = max(_MIN_FRESH_S, _STALE_PERIODS * export_period_s)
        self._reports: dict[_Process, _Reports] = {}
        self._totals: dict[int, dict[int, _Totals]] = {}  # by task and incarnation
        self._process_of: dict[int, _Process] = {}  # that last reported of a task
        self.first_tuple_at_s: float | None = None
        """When the first bolt received its first tuple (wall-clock seconds)."""

    def take(self, record: MetricsRecord, now_s: float) -> None:
        """Takes a record of any process, which arrives now."""
        source = record.source
        for event in record.events:
            if event.name == EVENT_FIRST_TUPLE:
                self.first_tuple_at_s = min(event.at_s, self.first_tuple_at_s or event.at_s)
        if source.task_id:
            self._totals.setdefault(source.task_id, {}).setdefault(source.incarnation, _Totals()).take(record)
        process = (source.container_id, source.process)
        known = self._reports.get(process)
        if known is None or source.incarnation > known.newest.source.incarnation:
            before = None
        elif source.incarnation == known.newest.source.incarnation and record.at_s > known.newest.at_s:
            before = known.newest
        else:
            return
        self._reports[process] = _Reports(record, before, now_s, _waiting_bytes(record), _rates(record, before))
        if source.task_id:
            self._process_of[source.task_id] = process

    def figures(self, kind: str, task_ids: Iterable[int], now_s: float) -> ComponentFigures:
        """The sums over these tasks of a ``spout`` or ``bolt``."""
        tasks = frozenset(task_ids)
        incarnations = [totals for task_id in tasks for totals in self._totals.get(task_id, {}).values()]
        counts = {name: sum(totals.counts[name] for totals in incarnations) for name in _COUNTS}
        latency_entries = sum(totals.latency_entries for totals in incarnations)
        latency_total_s = sum(totals.latency_total_s for totals in incarnations)
        reports = [self._reports[self._process_of[task_id]] for task_id in tasks if task_id in self._process_of]
        return ComponentFigures(
            emitted=round(counts[EMIT_COUNT]),
            executed=round(counts[EXECUTE_COUNT]),
            acked=round(counts[ACK_COUNT]),
            failed=round(counts[FAIL_COUNT]),
            rate_per_s=sum(each.rates.get(_RATED[kind], 0.0) for each in reports if self._fresh(each, now_s)),
            queue_bytes=round(sum(self._waiting(tasks, now_s))),
            latency_s=latency_total_s / latency_entries if latency_entries else 0.0,
            tasks=sum(task_id in self._totals for task_id in tasks),
            shed=round(counts[SHED_COUNT]),
        )

    def table(
        self, component: str, task_id: int, *, by_task: bool, names: Collection[str] = (), now_s: float
    ) -> MetricsTable:
        """The metrics of a component's tasks, of one task, or of all processes ("" and 0), ordered by owner and name.

        `names` are those of the metrics; empty for all, and `OF_AUTHORS` for the first 33 that the author of each task
        has registered. The sum over the tasks of a component adds counters, gauges and the buckets of histograms.
        """
        wanted = frozenset(names)
        sums: dict[_Owner, dict[_Series, _Sum]] = {}
        for reports in self._reports.values():
            source = reports.newest.source
            if (component and source.component != component) or (task_id and source.task_id != task_id):
                continue
            of_owner = sums.setdefault(_owner(source, by_task=by_task or bool(task_id)), {})
            _add(of_owner, reports, wanted, fresh=self._fresh(reports, now_s))
        numbers: dict[_Series, int] = {}
        owners = [
            MetricsOwner(*owner, list(_values(of_owner, numbers)))
            for owner, of_owner in sorted(sums.items(), key=_order)
        ]
        series = [MetricsSeries(name, kind, unit, dict(labels)) for name, kind, unit, labels in numbers]
        return MetricsTable(series, owners)

    def outages(self, now_s: float) -> tuple[SinkOutage, ...]:
        """The sinks that fail, as their metrics managers report."""
        return tuple(
            SinkOutage(metric.labels.get("sink", ""), source.container_id, value, metric.labels.get("reason", ""))
            for source, metric, value in self._fresh_gauges(SINK_OUTAGE, now_s)
        )

    def unreached(self, now_s: float) -> tuple[Unreached, ...]:
        """The stream managers that their peers do not reach, as the peers report."""
        return tuple(
            Unreached(int(metric.labels.get("peer", "0")), source.container_id, value)
            for source, metric, value in self._fresh_gauges(PEER_SILENT, now_s)
        )

    def _fresh(self, reports: _Reports, now_s: float) -> bool:
        return now_s - reports.arrived_s < self._fresh_s

    def _waiting(self, tasks: frozenset[int], now_s: float) -> Iterator[float]:
        for reports in self._reports.values():
            if self._fresh(reports, now_s):
                yield from (size for task_id, size in reports.waiting.items() if task_id in tasks)

    def _fresh_gauges(self, name: str, now_s: float) -> Iterator[tuple[Source, Metric, float]]:
        """The gauges of that name above zero, of processes that are not stale."""
        for _, reports in sorted(self._reports.items()):
            if self._fresh(reports, now_s):
                for metric in reports.newest.metrics:
                    if metric.name == name and not isinstance(metric.value, Histogram) and metric.value > 0:
                        yield reports.newest.source, metric, metric.value


def quantile(bounds: Sequence[float], counts: Sequence[int], share: float) -> float | None:
    """The value below which that share (0 to 1) of the entries of a histogram lies; None without entries.

    `bounds` are inclusive upper bounds, ascending; `counts` has one more element, for entries above the last bound.
    Entries count as evenly spread within a bucket. Entries above the last bound count as equal to it.
    """
    wanted = share * sum(counts)
    if not wanted:
        return None
    lower = seen = 0.0
    for bound, count in zip(bounds, counts, strict=False):
        if seen + count >= wanted:
            return lower + (bound - lower) * (wanted - seen) / count
        seen += count
        lower = bound
    return lower


def _counts(record: MetricsRecord) -> dict[str, float]:
    """The counters of `_COUNTS` in a record, each summed over its labels."""
    counts: dict[str, float] = {}
    for metric in record.metrics:
        if metric.name in _COUNTS and not isinstance(metric.value, Histogram):
            counts[metric.name] = counts.get(metric.name, 0.0) + metric.value
    return counts


def _rates(record: MetricsRecord, before: MetricsRecord | None) -> dict[str, float]:
    if before is None or not record.source.task_id:
        return {}
    former, passed_s = _counts(before), record.at_s - before.at_s
    return {name: max(0.0, count - former.get(name, 0.0)) / passed_s for name, count in _counts(record).items()}


def _waiting_bytes(record: MetricsRecord) -> dict[int, float]:
    waiting: dict[int, float] = {}
    for metric in record.metrics:
        task_id = _waits_for(metric, record.source.task_id)
        if task_id and not isinstance(metric.value, Histogram):
            waiting[task_id] = waiting.get(task_id, 0.0) + metric.value
    return waiting


def _waits_for(metric: Metric, own_task: int) -> int:
    """The task for which the bytes of a queue metric wait; 0 for other metrics."""
    if metric.name == IN_QUEUE_BYTES:
        return own_task
    if metric.name == OUTLET_BYTES:
        return _task_label(metric.labels)
    return 0


def _task_label(labels: Mapping[str, str]) -> int:
    label = labels.get("task", "")
    return int(label) if label.isdigit() else 0


def _add(sums: dict[_Series, _Sum], reports: _Reports, wanted: frozenset[str], *, fresh: bool) -> None:
    former = reports.before.metrics if reports.before and fresh else ()
    before = {_series(metric): metric for metric in _named(former, wanted)}
    passed_s = reports.newest.at_s - reports.before.at_s if reports.before else 0.0
    for metric in _named(reports.newest.metrics, wanted):
        if fresh or metric.kind is not MetricKind.GAUGE:
            series = _series(metric)
            sums.setdefault(series, _Sum()).add(metric, before.get(series), passed_s)


def _named(metrics: Iterable[Metric], wanted: frozenset[str]) -> Iterable[Metric]:
    if not wanted:
        return metrics
    named = (each for each in metrics if each.name in wanted)
    if OF_AUTHORS not in wanted:
        return named
    own = (each for each in metrics if each.name.startswith(OF_AUTHORS) and each.name not in wanted)
    return chain(named, islice(own, _MOST_OF_AUTHORS))


def _amount(metric: Metric) -> float:
    return float(sum(metric.value.counts)) if isinstance(metric.value, Histogram) else metric.value


def _owner(source: Source, *, by_task: bool) -> _Owner:
    if not source.task_id:
        return "", 0, f"{source.process}-{source.container_id}"
    return (source.component, source.task_id, source.process) if by_task else (source.component, 0, source.component)


def _series(metric: Metric) -> _Series:
    return metric.name, metric.kind.value, metric.unit, tuple(sorted(metric.labels.items()))


def _order(item: tuple[_Owner, dict[_Series, _Sum]]) -> tuple[bool, _Owner]:
    return not item[0][0], item[0]  # the engine's processes last


def _values(sums: dict[_Series, _Sum], numbers: dict[_Series, int]) -> Iterator[MetricsValue]:
    """The values of one owner; a series that is new gets the next number."""
    for series, total in sorted(sums.items(), key=lambda item: item[0]):
        number = numbers.setdefault(series, len(numbers))
        p50, p99 = (quantile(total.bounds, total.counts, share) for share in (0.5, 0.99))
        yield MetricsValue(number, total.value, total.rate, p50, p99)
