"""Encodes and decodes metrics records.

Tuples are made of lists here, not of generators. A tuple made of a generator is resized at its end; the interpreter
keeps up to 2,000 freed tuples of each length, and a resized tuple never reuses one. That costs megabytes in the first
half hour of every process that decodes records.
"""

from __future__ import annotations

from heron.ipc import control_pb2 as pb
from heron.spi.metricsink import Event, Histogram, Metric, MetricKind, MetricsRecord, Source

__all__ = ["publish_message", "record_of"]


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
    )


def record_of(message: pb.MetricsPublish) -> MetricsRecord:
    """Decodes a record; metrics of an unknown kind are skipped."""
    source = Source(
        message.topology,
        message.container_id,
        message.process,
        message.incarnation,
        message.component,
        message.task_id,
    )
    kinds = {kind.value for kind in MetricKind}
    return MetricsRecord(
        source,
        message.at_s,
        tuple([_metric(metric) for metric in message.metrics if metric.kind in kinds]),
        tuple([_event(event) for event in message.events]),
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
        MetricKind(message.kind),
        message.unit,
        value,
        {label.name: label.value for label in message.labels},
    )


def _labels(labels: dict[str, str]) -> list[pb.Label]:
    return [pb.Label(name=_text(name), value=_text(value)) for name, value in labels.items()]


def _text(value: str) -> str:
    """A text that protobuf accepts: the text of an author may contain lone surrogates."""
    return value.encode("utf-8", "backslashreplace").decode()
