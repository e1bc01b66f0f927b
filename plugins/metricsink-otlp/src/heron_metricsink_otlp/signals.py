"""A record as OTLP messages, one for each signal. Pure."""

from __future__ import annotations

from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.logs.v1.logs_pb2 import SEVERITY_NUMBER_INFO, LogRecord, ResourceLogs, ScopeLogs
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    AGGREGATION_TEMPORALITY_CUMULATIVE,
    Gauge,
    HistogramDataPoint,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.proto.metrics.v1.metrics_pb2 import Histogram as OtlpHistogram
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric as OtlpMetric
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans

from heron.spi.metricsink import Event, Histogram, Metric, MetricKind, MetricsRecord
from heron_metricsink_otlp.resources import SCOPE, attributes, nanoseconds, resource_of, text
from heron_metricsink_otlp.spans import spans_of

__all__ = ["events_of", "metrics_of", "traces_of"]

_PREFIX = "heron."
_UNITS = {"bytes": "By", "s": "s", "1": "1", "": ""}


def metrics_of(record: MetricsRecord) -> ResourceMetrics | None:
    """Return the metrics of a record; None if it has none."""
    if not record.metrics:
        return None
    at_ns = nanoseconds(record.at_s)
    scope = ScopeMetrics(scope=SCOPE, metrics=[_metric(each, at_ns) for each in record.metrics])
    return ResourceMetrics(resource=resource_of(record.source), scope_metrics=[scope])


def events_of(record: MetricsRecord) -> ResourceLogs | None:
    """Return the events of a record as log records; None if it has none."""
    if not record.events:
        return None
    logs = [_log(each) for each in record.events]
    return ResourceLogs(resource=resource_of(record.source), scope_logs=[ScopeLogs(scope=SCOPE, log_records=logs)])


def traces_of(record: MetricsRecord) -> ResourceSpans | None:
    """Return the spans of a record; None if it has none."""
    spans = [made for each in record.spans for made in spans_of(each)]
    if not spans:
        return None
    return ResourceSpans(resource=resource_of(record.source), scope_spans=[ScopeSpans(scope=SCOPE, spans=spans)])


def _metric(metric: Metric, at_ns: int) -> OtlpMetric:
    made = OtlpMetric(name=_PREFIX + text(metric.name), unit=_UNITS.get(metric.unit, f"{{{text(metric.unit)}}}"))
    labels = attributes(metric.labels)
    if isinstance(metric.value, Histogram):
        counts = metric.value.counts
        histogram = HistogramDataPoint(
            time_unix_nano=at_ns,
            attributes=labels,
            count=sum(counts),
            sum=metric.value.total,
            bucket_counts=counts,
            explicit_bounds=metric.value.bounds,
        )
        made.histogram.CopyFrom(
            OtlpHistogram(data_points=[histogram], aggregation_temporality=AGGREGATION_TEMPORALITY_CUMULATIVE)
        )
        return made
    point = NumberDataPoint(time_unix_nano=at_ns, attributes=labels, as_double=metric.value)
    if metric.kind is MetricKind.COUNTER:
        made.sum.CopyFrom(
            Sum(data_points=[point], aggregation_temporality=AGGREGATION_TEMPORALITY_CUMULATIVE, is_monotonic=True)
        )
    else:
        made.gauge.CopyFrom(Gauge(data_points=[point]))
    return made


def _log(event: Event) -> LogRecord:
    own = {
        "heron.event.id": event.id,
        "heron.event.subject": event.subject,
        "heron.event.cause": event.cause,
    }
    at_ns = nanoseconds(event.at_s)
    return LogRecord(
        time_unix_nano=at_ns,
        observed_time_unix_nano=at_ns,
        severity_number=SEVERITY_NUMBER_INFO,
        event_name=text(event.name),
        body=AnyValue(string_value=text(f"{event.name}: {event.subject}")),
        attributes=attributes(own | event.attributes),
    )
