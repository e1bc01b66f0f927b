"""The newest value of each series, in the terms of the Prometheus client. Thread-safe.

A series without a report for some time leaves the page: its process has ended, or runs in another container now.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from prometheus_client.core import Metric as Family
from prometheus_client.registry import Collector

from heron.clock import Clock, SystemClock
from heron.spi.metricsink import Histogram, Metric, MetricKind, MetricsRecord
from heron_metricsink_prometheus.names import family_name, labels_of

__all__ = ["LEFT_OUT", "SeriesCollector"]

LEFT_OUT = "heron_sink_left_out"
"""The counter of values that the page leaves out. Its label ``reason`` is ``series`` (there are `max_series` series) or
``kind`` (a metric of another kind has the name)."""


@dataclass(slots=True)
class _Series:
    labels: dict[str, str]
    value: float | Histogram
    incarnation: int
    reported_s: float


@dataclass(slots=True)
class _Family:
    kind: MetricKind
    unit: str
    series: dict[tuple[tuple[str, str], ...], _Series]


class SeriesCollector(Collector):
    """Keeps the series. The thread of the sink adds records, and the threads of the page server collect."""

    def __init__(self, max_series: int, expire_s: float, clock: Clock | None = None) -> None:
        self._max_series = max_series
        self._expire_s = expire_s
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()
        self._families: dict[str, _Family] = {}
        self._count = 0
        self._left_out: Counter[str] = Counter({"series": 0, "kind": 0})

    def add(self, record: MetricsRecord) -> str:
        """Add the values of a record; return the first reason for a value that was left out, or ""."""
        with self._lock:
            now_s = self._clock.monotonic_s()
            reasons = [reason for metric in record.metrics if (reason := self._add(record, metric, now_s))]
            self._left_out.update(reasons)
        return reasons[0] if reasons else ""

    def collect(self) -> Iterable[Family]:
        """Return the families of the page."""
        with self._lock:
            self._expire(self._clock.monotonic_s())
            found = [_to_family(name, family) for name, family in self._families.items()]
            counts = dict(self._left_out)
        left_out = Family(LEFT_OUT, "values that the page leaves out", "counter")
        for reason, count in counts.items():
            left_out.add_sample(f"{LEFT_OUT}_total", {"reason": reason}, count)
        return [*found, left_out]

    def _add(self, record: MetricsRecord, metric: Metric, now_s: float) -> str:
        name = family_name(metric)
        family = self._families.get(name) or _Family(metric.kind, metric.unit, {})
        if family.kind is not metric.kind or name == LEFT_OUT:
            return "kind"
        labels = labels_of(record.source, metric)
        key = tuple(sorted(labels.items()))
        present = family.series.get(key)
        if present is None and self._count >= self._max_series:
            return "series"
        if present is not None and present.incarnation > record.source.incarnation:
            return ""  # a late record of an earlier incarnation
        self._count += present is None
        family.series[key] = _Series(labels, metric.value, record.source.incarnation, now_s)
        self._families[name] = family
        return ""

    def _expire(self, now_s: float) -> None:
        for name, family in list(self._families.items()):
            for key, series in list(family.series.items()):
                if now_s - series.reported_s > self._expire_s:
                    del family.series[key]
                    self._count -= 1
            if not family.series:
                del self._families[name]


def _to_family(name: str, family: _Family) -> Family:
    found = Family(name, f"{name.removeprefix('heron_').replace('_', ' ')}, in {family.unit}", family.kind.value)
    for series in family.series.values():
        if isinstance(series.value, Histogram):
            _add_histogram(found, series.labels, series.value)
        else:
            suffix = "_total" if family.kind is MetricKind.COUNTER else ""
            found.add_sample(f"{name}{suffix}", series.labels, series.value)
    return found


def _add_histogram(family: Family, labels: dict[str, str], histogram: Histogram) -> None:
    total = 0
    for bound, count in zip((*histogram.bounds, float("inf")), histogram.counts, strict=True):
        total += count
        le = "+Inf" if bound == float("inf") else repr(float(bound))
        family.add_sample(f"{family.name}_bucket", {**labels, "le": le}, total)
    family.add_sample(f"{family.name}_sum", labels, histogram.total)
    family.add_sample(f"{family.name}_count", labels, total)
