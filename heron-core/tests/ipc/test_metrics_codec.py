"""Metrics records on the wire."""

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
