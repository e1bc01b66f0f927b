"""The newest metrics of every process with their rates over the last period of export. Pure.

Where the tasks of a component are summed up, counters, gauges and the buckets of histograms are added. A process that
has not reported for long has totals, but neither rates nor gauges.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from heron.ipc.metric_names import PEER_SILENT, SINK_OUTAGE
from heron.ipc.metrics_table import MetricsRow
from heron.ipc.status import SinkOutage, Unreached
from heron.spi.metricsink import Histogram, Metric, MetricKind, MetricsRecord, Source
from heron.tmanager.quantile import quantile

__all__ = ["MetricsBoard"]

_Labels = tuple[tuple[str, str], ...]
_Who = tuple[str, int, str]  # component, task, process
_What = tuple[str, str, str, _Labels]  # name, kind, unit, labels


@dataclass(slots=True)
class _Latest:
    """The newest record of a process, the one before it in the same life, and when the newest came."""

    record: MetricsRecord
    before: MetricsRecord | None
    arrived_s: float


class _Sum:
    """One row in the making."""

    __slots__ = ("bounds", "counts", "rate", "value")

    def __init__(self) -> None:
        self.value = 0.0
        self.rate: float | None = None
        self.bounds: tuple[float, ...] = ()
        self.counts: list[int] = []  # in the last period, by bucket

    def add(self, metric: Metric, before: Metric | None, passed_s: float) -> None:
        value = _amount(metric)
        self.value += value
        if metric.kind is MetricKind.GAUGE or before is None or passed_s <= 0:
            return
        self.rate = (self.rate or 0.0) + max(0.0, value - _amount(before)) / passed_s
        if isinstance(metric.value, Histogram) and isinstance(before.value, Histogram):
            self._add_counts(metric.value, before.value)

    def quantile(self, share: float) -> float | None:
        return quantile(self.bounds, self.counts, share)

    def _add_counts(self, now: Histogram, before: Histogram) -> None:
        if now.bounds != before.bounds or (self.counts and self.bounds != now.bounds):
            return  # of another version of the author's code
        self.bounds = now.bounds
        self.counts = self.counts or [0] * len(now.counts)
        for index, (count, former) in enumerate(zip(now.counts, before.counts, strict=True)):
            self.counts[index] += max(0, count - former)


class MetricsBoard:
    """Two records of each process; times are monotonic seconds of arrival."""

    def __init__(self, fresh_s: float) -> None:
        self._fresh_s = fresh_s
        self._latest: dict[tuple[int, str], _Latest] = {}

    def take(self, record: MetricsRecord, now_s: float) -> None:
        """Takes a record of any process; one that is older than what is known changes nothing."""
        key = (record.source.container_id, record.source.process)
        known = self._latest.get(key)
        if known is None or record.source.incarnation > known.record.source.incarnation:
            self._latest[key] = _Latest(record, None, now_s)
        elif record.source.incarnation == known.record.source.incarnation and record.at_s > known.record.at_s:
            self._latest[key] = _Latest(record, known.record, now_s)

    def rows(self, component: str, task_id: int, *, by_task: bool, now_s: float) -> tuple[MetricsRow, ...]:
        """The metrics of a component's tasks, of one task, or of all processes ("" and 0), ordered by who and what."""
        sums: dict[_Who, dict[_What, _Sum]] = {}
        for latest in self._latest.values():
            source = latest.record.source
            if (component and source.component != component) or (task_id and source.task_id != task_id):
                continue
            of_process = sums.setdefault(_who(source, by_task=by_task or bool(task_id)), {})
            self._add(of_process, latest, fresh=now_s - latest.arrived_s < self._fresh_s)
        return tuple(row for who, of_process in sorted(sums.items(), key=_order) for row in _rows_of(who, of_process))

    def outages(self, now_s: float) -> tuple[SinkOutage, ...]:
        """The sinks that do not work, as far as their metrics managers report."""
        return tuple(
            SinkOutage(metric.labels.get("sink", ""), source.container_id, value, metric.labels.get("reason", ""))
            for source, metric, value in self._fresh_gauges(SINK_OUTAGE, now_s)
        )

    def unreached(self, now_s: float) -> tuple[Unreached, ...]:
        """The stream managers that others do not hear, as far as these report."""
        return tuple(
            Unreached(int(metric.labels.get("peer", "0")), source.container_id, value)
            for source, metric, value in self._fresh_gauges(PEER_SILENT, now_s)
        )

    def _fresh_gauges(self, name: str, now_s: float) -> Iterator[tuple[Source, Metric, float]]:
        """Those above zero that were reported of late."""
        for _, latest in sorted(self._latest.items()):
            if now_s - latest.arrived_s < self._fresh_s:
                for metric in latest.record.metrics:
                    if metric.name == name and not isinstance(metric.value, Histogram) and metric.value > 0:
                        yield latest.record.source, metric, metric.value

    def _add(self, sums: dict[_What, _Sum], latest: _Latest, *, fresh: bool) -> None:
        before = {_what(metric): metric for metric in latest.before.metrics} if latest.before and fresh else {}
        passed_s = latest.record.at_s - latest.before.at_s if latest.before else 0.0
        for metric in latest.record.metrics:
            if fresh or metric.kind is not MetricKind.GAUGE:
                what = _what(metric)
                sums.setdefault(what, _Sum()).add(metric, before.get(what), passed_s)


def _amount(metric: Metric) -> float:
    return float(sum(metric.value.counts)) if isinstance(metric.value, Histogram) else metric.value


def _who(source: Source, *, by_task: bool) -> _Who:
    if not source.task_id:
        return "", 0, f"{source.process}-{source.container_id}"
    return (source.component, source.task_id, source.process) if by_task else (source.component, 0, source.component)


def _what(metric: Metric) -> _What:
    return metric.name, metric.kind.value, metric.unit, tuple(sorted(metric.labels.items()))


def _order(item: tuple[_Who, dict[_What, _Sum]]) -> tuple[bool, _Who]:
    return not item[0][0], item[0]  # the engine's own processes last


def _rows_of(who: _Who, sums: dict[_What, _Sum]) -> Iterator[MetricsRow]:
    component, task_id, process = who
    for (name, kind, unit, labels), total in sorted(sums.items(), key=lambda item: item[0]):
        yield MetricsRow(
            component,
            task_id,
            process,
            name,
            kind,
            unit,
            total.value,
            dict(labels),
            total.rate,
            total.quantile(0.5),
            total.quantile(0.99),
        )
