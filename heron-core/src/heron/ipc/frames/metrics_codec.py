"""Encodes and decodes metrics records.

Tuples are made of lists here, not of generators. A tuple made of a generator is resized at its end; the interpreter
keeps up to 2,000 freed tuples of each length, and a resized tuple never reuses one. That costs megabytes in the first
half hour of every process that decodes records.
"""

from __future__ import annotations

from heron.ipc import control_pb2 as pb
from heron.spi.metricsink import Event, Histogram, Metric, MetricKind, MetricsRecord, Source
from heron.spi.tracing import SpanKind, Stamp, StampKind, TraceSpan

__all__ = ["publish_message", "record_of"]

_KINDS = {each.value: each for each in MetricKind}
_SPAN_KINDS = frozenset(each.value for each in SpanKind)
_STAMP_KINDS = frozenset(each.value for each in StampKind)


def publish_message(record: MetricsRecord) -> pb.MetricsPublish:
    """Encodes a record."""
    source = record.source
    return pb.MetricsPublish(
        topology=source.topology,
        container_id=source.container_id,
        process=source.process,
        incarnation=source.incarnation,
        component=source.component,
        task_id=source.task_id,
        at_s=record.at_s,
        metrics=[_metric_message(metric) for metric in record.metrics],
        events=[
            pb.Event(
                id=event.id,
                name=event.name,
                at_s=event.at_s,
                subject=event.subject,
                cause=event.cause,
                attributes=_labels(event.attributes),
            )
            for event in record.events
        ],
        spans=[_span_message(span) for span in record.spans],
    )


def record_of(message: pb.MetricsPublish) -> MetricsRecord:
    """Decodes a record; metrics and spans of an unknown kind, and stamps of one, are skipped."""
    source = Source(
        message.topology,
        message.container_id,
        message.process,
        message.incarnation,
        message.component,
        message.task_id,
    )
    return MetricsRecord(
        source,
        message.at_s,
        tuple([_metric(metric) for metric in message.metrics if metric.kind in _KINDS]),
        tuple([_event(event) for event in message.events]),
        tuple([_span(span, source) for span in message.spans if span.kind in _SPAN_KINDS]),
    )


def _metric_message(metric: Metric) -> pb.Metric:
    message = pb.Metric(
        name=_text(metric.name), kind=metric.kind.value, unit=metric.unit, labels=_labels(metric.labels)
    )
    if isinstance(metric.value, Histogram):
        message.histogram.CopyFrom(
            pb.Histogram(bounds=metric.value.bounds, counts=metric.value.counts, total=metric.value.total)
        )
    else:
        message.value = metric.value
    return message


def _event(message: pb.Event) -> Event:
    attributes = {label.name: label.value for label in message.attributes}
    return Event(message.id, message.name, message.at_s, message.subject, message.cause, attributes)


def _metric(message: pb.Metric) -> Metric:
    value: float | Histogram = message.value
    if message.HasField("histogram"):
        histogram = message.histogram
        value = Histogram(tuple(histogram.bounds), tuple(histogram.counts), histogram.total)
    return Metric(
        message.name,
        _KINDS[message.kind],
        message.unit,
        value,
        {label.name: label.value for label in message.labels},
    )


def _span_message(span: TraceSpan) -> pb.TraceSpan:
    return pb.TraceSpan(
        trace_id=int(span.trace_id, 16),
        span_id=int(span.span_id, 16),
        parent_id=int(span.parent_id or "0", 16),
        kind=span.kind.value,
        stamps=[
            pb.TraceStamp(kind=each.kind.value, clock=each.clock, monotonic_ns=each.monotonic_ns, wall_ns=each.wall_ns)
            for each in span.stamps
        ],
        source=span.source,
        source_task=span.source_task,
        stream=span.stream,
        rows=span.rows,
        emitted=span.emitted,
        followed=span.followed,
        outcome=span.outcome,
    )


def _span(message: pb.TraceSpan, source: Source) -> TraceSpan:
    stamps = [
        Stamp(StampKind(each.kind), each.clock, each.monotonic_ns, each.wall_ns)
        for each in message.stamps
        if each.kind in _STAMP_KINDS
    ]
    return TraceSpan(
        f"{message.trace_id:016x}",
        f"{message.span_id:016x}",
        f"{message.parent_id:016x}" if message.parent_id else "",
        SpanKind(message.kind),
        source.component,
        source.task_id,
        tuple(stamps),
        source=message.source,
        source_task=message.source_task,
        stream=message.stream,
        rows=message.rows,
        emitted=message.emitted,
        followed=message.followed,
        outcome=message.outcome,
    )


def _labels(labels: dict[str, str]) -> list[pb.Label]:
    return [pb.Label(name=_text(name), value=_text(value)) for name, value in labels.items()]


def _text(value: str) -> str:
    """A text that protobuf accepts: the text of an author may contain lone surrogates."""
    return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()
