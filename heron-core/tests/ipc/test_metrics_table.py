"""Rows of metrics on their way from the topology manager: short, and equal on the other side."""

from __future__ import annotations

import json

import msgspec
import pytest

from heron.errors import RemoteProtocolError
from heron.ipc import metrics_table
from heron.ipc.metrics_table import MetricsRow, SentRow, decode_metrics, decode_metrics_as, encode_metrics

GAUGE = SentRow("count", 3, "count-3", "resident-bytes", "gauge", "bytes", 3.0)
COUNTER = SentRow("count", 3, "count-3", "emit-count", "counter", "tuples", 7.0, {"stream": "default"}, 0.0)
HISTOGRAM = SentRow("count", 3, "count-3", "latency", "histogram", "s", 7.0, {}, 2.0, 0.5, 0.9)
ROWS = (GAUGE, COUNTER, HISTOGRAM)


def test_what_was_not_measured_is_not_sent() -> None:
    """A rate of 0 was measured."""
    gauge, counter, histogram = json.loads(encode_metrics(ROWS))
    assert list(gauge) == ["component", "task_id", "process", "name", "kind", "unit", "value"]
    assert (counter["labels"], counter["rate_per_s"]) == ({"stream": "default"}, 0.0)
    assert (histogram["p50"], histogram["p99"]) == (0.5, 0.9)


@pytest.mark.parametrize("whole_bytes", [10, 1 << 20])
def test_a_reader_gets_every_value(monkeypatch: pytest.MonkeyPatch, whole_bytes: int) -> None:
    """Decoded at once or in pieces. A reader's own JSON has all keys."""
    monkeypatch.setattr(metrics_table, "_WHOLE_BYTES", whole_bytes)
    rows = decode_metrics(encode_metrics(ROWS))
    assert rows == tuple(MetricsRow(*msgspec.structs.astuple(each)) for each in ROWS)
    assert set(json.loads(msgspec.json.encode(rows[0]))) == set(MetricsRow.__struct_fields__)
    assert decode_metrics_as(encode_metrics(ROWS), lambda row: row.value) == (3.0, 7.0, 7.0)


def test_rows_of_an_older_topology_manager_are_read() -> None:
    """It sends null for what it did not measure."""
    older = msgspec.json.encode([MetricsRow(*msgspec.structs.astuple(GAUGE))])
    assert b'"p50":null' in older
    assert decode_metrics(older) == (MetricsRow(*msgspec.structs.astuple(GAUGE)),)


@pytest.mark.parametrize("data", [b"", b"[", b'[{"name": 1}]', b"{}"])
def test_bytes_that_are_no_rows_are_refused(data: bytes) -> None:
    """By both functions."""
    for read in (decode_metrics, lambda given: decode_metrics_as(given, lambda row: row)):
        with pytest.raises(RemoteProtocolError, match=f"metrics of {len(data)} bytes cannot be read"):
            read(data)
