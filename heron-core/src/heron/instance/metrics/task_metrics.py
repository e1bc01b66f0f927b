"""The counts and latencies of a task, and the metrics that its author registers. Belongs to the task thread."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable
from numbers import Real
from typing import Protocol

from heron.api.global_metrics import root_name
from heron.api.metrics import IMetric
from heron.api.names import is_text
from heron.author_text import number_or_class, short_text
from heron.clock import monotonic_s
from heron.errors import UsageError
from heron.instance.metrics.spans import SpanBuffer
from heron.ipc.documents.metric_names import (
    ACK_COUNT,
    BACKLOG,
    COMPLETE_LATENCY,
    EMIT_COUNT,
    EXECUTE_BATCH_COUNT,
    EXECUTE_COUNT,
    EXECUTE_LATENCY,
    FAIL_COUNT,
    FAILED_BY,
    IGNORED_ACK_COUNT,
    TRACE_GAPS,
    WATERMARK,
)
from heron.spi.metricsink import OF_AUTHORS, Histogram, Metric, MetricKind

__all__ = ["LATENCY_BOUNDS_S", "LatencyHistogram", "TaskMetrics", "trace_metrics"]

LATENCY_BOUNDS_S = tuple(base * 10.0**exponent for exponent in range(-7, 2) for base in (1.0, 2.0, 5.0))
"""100 ns to 50 s in steps of about a factor of two."""


class MetricSource(Protocol):
    """Whatever has metrics of its own."""

    def metrics(self) -> list[Metric]:
        """Those of now."""
        ...


class LatencyHistogram:
    """A histogram of latencies."""

    __slots__ = ("_counts", "_total_s")

    def __init__(self) -> None:
        self._counts = [0] * (len(LATENCY_BOUNDS_S) + 1)
        self._total_s = 0.0

    def add(self, latency_s: float, times: int = 1) -> None:
        """Adds `times` entries of this latency."""
        self._counts[bisect_left(LATENCY_BOUNDS_S, latency_s)] += times
        self._total_s += latency_s * times

    def value(self) -> Histogram:
        """The totals so far."""
        return Histogram(LATENCY_BOUNDS_S, tuple(self._counts), self._total_s)


class _UserMetric:
    """An author's metric: read once per its period, and kept as numbers."""

    __slots__ = ("due_s", "metric", "period_s", "values")

    def __init__(self, metric: IMetric, period_s: float, now_s: float) -> None:
        self.metric = metric
        self.period_s = period_s
        self.due_s = now_s + period_s
        self.values: dict[str, float] = {}

    def read(self, now_s: float) -> None:
        self.due_s = now_s + self.period_s
        value = self.metric.get_value_and_reset()
        if value is None:
            return
        given = {f"/{_key_text(key)}": each for key, each in value.items()} if isinstance(value, dict) else {"": value}
        wrong = [key for key, each in given.items() if each is not None and not _is_number(each)]
        self.values = {key: float(each) for key, each in given.items() if isinstance(each, Real) and key not in wrong}
        if wrong:
            of = f" of {wrong[0][1:]}" if wrong[0] else ""
            msg = f"its value, {number_or_class(given[wrong[0]])},{of} is not a number; give a number or None"
            raise UsageError(msg)


def _is_number(value: object) -> bool:
    """Whether a value of an author fits in a float; also one of NumPy's."""
    if not isinstance(value, Real):
        return False
    try:
        float(value)
    except Exception:  # it is too large, or its class is the author's
        return False
    return True


def _float(value: object) -> float:
    """A number of an author; NaN for what is none, whose text must not be in an error."""
    try:
        return float(value)  # type: ignore[arg-type]  # refused here
    except (TypeError, ValueError):
        return math.nan


def _key_text(key: object) -> str:
    return key if type(key) is str else short_text(key)


class TaskMetrics:
    """All counts of one task since its process began.

    `on_broken` receives the name of an author's metric that raised, the exception, and what happens instead. `backlog`
    is the method of a spout that has one, `keys` the sample of a bolt whose input has keys, `replays` those of a spout,
    `letters` counts the dead letters of steps, `shedding` the tuples that a spout sheds.
    """

    def __init__(self) -> None:
        self.executed: dict[tuple[str, str], int] = {}
        self.executed_batches: dict[tuple[str, str], int] = {}
        self.acked = 0
        self.failed = 0
        self.ignored_acks = 0
        self.watermark_us: int | None = None
        self.failed_by: dict[str, int] = {}
        self.execute_latency = LatencyHistogram()
        self.complete_latency = LatencyHistogram()
        self.backlog: Callable[[], float | None] | None = None
        self.keys: MetricSource | None = None
        self.replays: MetricSource | None = None
        self.letters: MetricSource | None = None
        self.shedding: MetricSource | None = None
        self._user: dict[str, _UserMetric] = {}
        self.on_broken: Callable[[str, Exception, str], object] | None = None

    def register(self, name: str, metric: IMetric, period_s: float) -> None:
        """Adds an author's metric.

        Raises:
            UsageError: when the name is not a text or is registered already, `metric` is not a metric, or the period
                is not above 0.
        """
        metric_name = f"metric {short_text(name)}"
        if not is_text(name):
            msg = f"{metric_name}: the name is not a text of at least one character, without lone surrogates"
            raise UsageError(msg)
        if name in self._user:
            msg = f"{metric_name} is registered already; choose another name"
            raise UsageError(msg)
        if not callable(getattr(metric, "get_value_and_reset", None)):
            msg = f"{metric_name}: {short_text(metric)} is not a metric; derive its class from IMetric"
            raise UsageError(msg)
        if not _is_number(period_s) or isinstance(period_s, bool) or not period_s > 0:
            msg = f"{metric_name}: time_bucket_in_sec {short_text(period_s)} s is not above 0 s"
            raise UsageError(msg)
        self._user[name] = _UserMetric(metric, float(period_s), monotonic_s())

    def forget_registered(self) -> None:
        """Removes the author's metrics, except the counters of the process."""
        self._user = {name: each for name, each in self._user.items() if name == root_name}

    def _read(self, name: str, user: _UserMetric, now_s: float) -> None:
        try:
            user.read(now_s)
        except Exception as error:
            if self.on_broken is not None:
                self.on_broken(f"metric {name!r}", error, "the last value is kept")

    def backlog_tuples(self) -> float | None:
        """What waits at the source of a spout; None if its author's `backlog` does not know."""
        try:
            backlog = self.backlog() if self.backlog is not None else None
            if backlog is None:
                return None
            tuples = _float(backlog)
            if not tuples >= 0:  # also refuses what is not a number
                msg = f"it returned {number_or_class(backlog)}, which is not a number of tuples"
                raise UsageError(msg)
        except Exception as error:
            if self.on_broken is not None:
                self.on_broken("backlog", error, "the backlog is unknown")
            return None
        return tuples

    def executed_total(self) -> int:
        """Tuples executed, over all sources."""
        return sum(self.executed.values())

    def snapshot(self, emitted: Iterable[tuple[str, int]], now_s: float, *, final: bool = False) -> list[Metric]:
        """All metrics now; `emitted` is ``(stream, tuples)`` for each output stream."""
        counter = MetricKind.COUNTER
        metrics = [Metric(EMIT_COUNT, counter, "tuples", count, {"stream": name}) for name, count in emitted]
        metrics += [
            Metric(EXECUTE_COUNT, counter, "tuples", count, {"component": component, "stream": stream})
            for (component, stream), count in self.executed.items()
        ]
        metrics += [
            Metric(EXECUTE_BATCH_COUNT, counter, "batches", count, {"component": component, "stream": stream})
            for (component, stream), count in self.executed_batches.items()
        ]
        metrics.append(Metric(ACK_COUNT, counter, "tuples", self.acked))
        metrics.append(Metric(FAIL_COUNT, counter, "tuples", self.failed))
        if self.ignored_acks:
            metrics.append(Metric(IGNORED_ACK_COUNT, counter, "tuples", self.ignored_acks))
        if self.watermark_us is not None:
            metrics.append(Metric(WATERMARK, MetricKind.GAUGE, "s", self.watermark_us / 1_000_000))
        if self.executed:
            metrics.append(Metric(EXECUTE_LATENCY, MetricKind.HISTOGRAM, "s", self.execute_latency.value()))
        if self.acked and not self.executed:
            metrics.append(Metric(COMPLETE_LATENCY, MetricKind.HISTOGRAM, "s", self.complete_latency.value()))
        metrics += [
            Metric(FAILED_BY, counter, "tuples", count, {"reason": reason}) for reason, count in self.failed_by.items()
        ]
        if (backlog := self.backlog_tuples()) is not None:
            metrics.append(Metric(BACKLOG, MetricKind.GAUGE, "tuples", backlog))
        for source in (self.keys, self.replays, self.letters, self.shedding):
            metrics += source.metrics() if source is not None else ()
        for name, user in self._user.items():
            if final or now_s >= user.due_s:
                self._read(name, user, now_s)
            metrics += [
                Metric(f"{OF_AUTHORS}{name}{suffix}", MetricKind.GAUGE, "1", value)
                for suffix, value in user.values.items()
            ]
        return metrics


def trace_metrics(spans: SpanBuffer) -> list[Metric]:
    """What is missing in the traces that pass through a task; nothing while nothing is missing."""
    missing = {"dropped": spans.dropped, "cut": spans.cut, "malformed": spans.malformed}
    return [
        Metric(TRACE_GAPS, MetricKind.COUNTER, "spans", count, {"reason": reason})
        for reason, count in missing.items()
        if count
    ]
