"""Metrics records on the wire."""

from __future__ import annotations

import sys
from dataclasses import replace

from heron.ipc import control_pb2 as pb
from heron.ipc.frames.metrics_codec import publish_message, record_of
from heron.spi.metricsink import Event, Histogram, Metric, MetricKind, MetricsRecord, Source
from heron.spi.tracing import SpanKind, Stamp, StampKind, TraceSpan

RECORD = MetricsRecord(
    Source("words", 2, "count-5", 65537, "count", 5),
    1_700_000_000.5,
    (
        Metric("emit-count", MetricKind.COUNTER, "tuples", 12.0, {"stream": "default"}),
        Metric("resident-bytes", MetricKind.GAUGE, "bytes", 4e7),
        Metric("execute-latency", MetricKind.HISTOGRAM, "s", Histogram((0.1, 1.0), (3, 2, 1), 4.25)),
    ),
    (Event("e-1", "user-error", 1_700_000_000.25, "task-5", "e-0", {"message": "no"}),),
)


SPANS = (
    TraceSpan("00000000000000ab", "ff000000000000cd", "", SpanKind.ROOT, "count", 5, (), outcome="complete"),
    TraceSpan(
        "00000000000000ab",
        "0000000000000001",
        "ff000000000000cd",
        SpanKind.EXECUTION,
        "count",
        5,
        (Stamp(StampKind.STARTED, 7, 1_000, 2_000), Stamp(StampKind.ENDED, 7, 1_500, 2_500)),
        source="lines",
        source_task=1,
        stream="default",
        rows=9,
        emitted=4,
        followed=3,
    ),
)


def test_the_spans_of_a_record_are_unchanged() -> None:
    """Component and task are those of the record's source."""
    record = replace(RECORD, spans=SPANS)
    sent = publish_message(record).SerializeToString()
    assert record_of(pb.MetricsPublish.FromString(sent)) == record


def test_spans_and_stamps_of_unknown_kinds_are_skipped() -> None:
    """A newer process may send them."""
    message = publish_message(replace(RECORD, spans=SPANS))
    message.spans[0].kind = "link"
    message.spans[1].stamps[0].kind = "teleported"
    (span,) = record_of(message).spans
    assert [each.kind for each in span.stamps] == [StampKind.ENDED]


def test_a_record_decodes_as_it_was_encoded() -> None:
    """Kinds, labels, histograms and events are unchanged."""
    sent = publish_message(RECORD).SerializeToString()
    assert record_of(pb.MetricsPublish.FromString(sent)) == RECORD


def test_a_metric_of_an_unknown_kind_is_skipped() -> None:
    """A newer process may send kinds that this version does not know."""
    message = publish_message(RECORD)
    message.metrics[0].kind = "sketch"
    assert [metric.name for metric in record_of(message).metrics] == ["resident-bytes", "execute-latency"]


def test_decoding_records_does_not_use_up_memory() -> None:
    """Memory that the interpreter keeps of a decoded record must be reused for later ones."""
    message = publish_message(RECORD)
    latest = [record_of(message) for _ in range(10)]
    before = sys.getallocatedblocks()
    for number in range(300):
        latest[number % len(latest)] = record_of(message)
    assert sys.getallocatedblocks() - before < 100
