"""A record as messages: one for its metrics, one for each event; JSON, as Scribe's readers split lines. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

import msgspec

from heron.spi.metricsink import MetricsRecord
from heron_metricsink_scribe.client import Entry

__all__ = ["entries"]


def entries(record: MetricsRecord, metrics_category: str, events_category: str) -> Iterator[Entry]:
    """What is sent of a record, without line ends inside."""
    source = asdict(record.source)
    if record.metrics:
        line = {"at_s": record.at_s, "source": source, "metrics": record.metrics}
        yield Entry(metrics_category, _json(line))
    for event in record.events:
        yield Entry(events_category, _json({**asdict(event), "source": source}))


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
