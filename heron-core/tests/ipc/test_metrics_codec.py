"""Metrics records over the wire."""

from __future__ import annotations

import sys

from heron.ipc import control_pb2 as pb
from heron.ipc.metrics_codec import publish_message, record_of
from heron.spi.metricsink import Event, Histogram, Metric, MetricKind, MetricsRecord, Source

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


def test_a_record_survives_the_wire() -> None:
    """Kinds, labels, histograms and events come back as they were."""
    sent = publish_message(RECORD).SerializeToString()
    assert record_of(pb.MetricsPublish.FromString(sent)) == RECORD


def test_a_metric_of_an_unknown_kind_is_left_out() -> None:
    """A newer process may measure what this side cannot show."""
    message = publish_message(RECORD)
    message.metrics[0].kind = "sketch"
    assert [metric.name for metric in record_of(message).metrics] == ["resident-bytes", "execute-latency"]


def test_reading_records_for_ever_takes_no_memory() -> None:
    """A record replaces the one before: what the interpreter keeps of that for later must be of use later."""
    message = publish_message(RECORD)
    latest = [record_of(message) for _ in range(10)]
    before = sys.getallocatedblocks()
    for number in range(300):
        latest[number % len(latest)] = record_of(message)
    assert sys.getallocatedblocks() - before < 100
