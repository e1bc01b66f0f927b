"""Contract of the metrics sink family, and the records that sinks receive.

The value of a counter is the total since its process started, so a lost record does no harm. The value of a gauge is
its current value. A histogram holds totals since its process started, and histograms merge by addition. Each metric has
a unit: ``tuples``, ``bytes``, ``s``, ``1``.
"""

from __future__ import annotations

import enum
from abc import abstractmethod
from dataclasses import dataclass, field

from heron.spi.driver import Driver
from heron.spi.tracing import TraceSpan

__all__ = [
    "CAPABILITIES",
    "OF_AUTHORS",
    "OLDEST_SPI_VERSION",
    "SPI_VERSION",
    "Event",
    "Histogram",
    "Metric",
    "MetricKind",
    "MetricsRecord",
    "MetricsSink",
    "Source",
]

SPI_VERSION = 1
OLDEST_SPI_VERSION = 1

CAPABILITIES = frozenset({"events", "files", "histograms", "history", "server", "traces"})
"""``events``: the sink keeps events, not only metrics. ``histograms``: it keeps bounds and counts of histograms.
``history``: it keeps every value, also after the process has ended; without the flag, the newest value of a live
process. ``files``: records go to files of the machine that uses it. ``server``: records go to a server. ``traces``: the
sink keeps the spans of traced tuples."""

OF_AUTHORS = "user/"
"""The names of the metrics that the author of a component registers begin with it; all others are the engine's own."""


class MetricKind(enum.Enum):
    """How values of a metric combine over time and over tasks."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts by bucket: `bounds` are ascending inclusive upper bounds; the last of `counts` is for larger values."""

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    total: float


@dataclass(frozen=True, slots=True)
class Metric:
    """One measurement: name, kind, unit, value, and labels such as the stream."""

    name: str
    kind: MetricKind
    unit: str
    value: float | Histogram
    labels: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Source:
    """The process that sent a record. `component` is "" and `task_id` is 0 for processes of the engine."""

    topology: str
    container_id: int
    process: str
    incarnation: int
    component: str = ""
    task_id: int = 0


@dataclass(frozen=True, slots=True)
class Event:
    """An event: its name, its subject, its time (wall-clock seconds), and the id of the event that caused it, or ""."""

    id: str
    name: str
    at_s: float
    subject: str
    cause: str = ""
    attributes: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MetricsRecord:
    """The metrics of one process at one moment (wall-clock seconds), and its events and spans since its last record."""

    source: Source
    at_s: float
    metrics: tuple[Metric, ...] = ()
    events: tuple[Event, ...] = ()
    spans: tuple[TraceSpan, ...] = ()


class MetricsSink(Driver):
    """Sends records to a monitoring system.

    The metrics manager of each container opens the sink and gives it a thread and a bounded buffer. A sink that is slow
    or raises loses its own records, which are counted under its name; it does not delay other sinks. Source: Heron's
    ``IMetricsSink``.
    """

    @abstractmethod
    def process(self, record: MetricsRecord) -> None:
        """Send one record, or keep it for `flush`.

        The metrics manager calls it from the thread of the sink; it may block up to 10 s. After an exception the record
        is lost and counted. A part of it may have arrived, which does no harm because counters are totals. A
        `SinkError` states how many records are lost, and the reason under which they are counted. The next record
        follows all the same, so the sink can connect again then.
        """

    @abstractmethod
    def flush(self) -> None:
        """Send all kept records. When it returns, each record has left the process or an exception reported its loss.

        After any other exception than a `SinkError`, all records since the last flush count as lost. `heron status`
        shows the reason, and names a sink whose call does not return within 8 s.

        A sink that keeps records while its server is away raises a `SinkError` with ``lost=0`` and tries again at a
        later flush; `heron_driver_kit.sink_buffer.SinkBuffer` keeps records for such a sink.

        Called from the same thread after each export interval and before `close`; may block up to 10 s. Flushed records
        survive ``kill -9`` of the process.
        """

    @abstractmethod
    def close(self) -> None:
        """Close files and connections; flushed records stay. The last call, from the same thread. Idempotent.

        May block up to 10 s. A sink may be closed without having been used.
        """
