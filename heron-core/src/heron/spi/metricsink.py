"""Contract of the metrics sink family, and the records that sinks are given.

A counter's value is the total since its process began (so that a lost record costs nothing); a gauge's is its value
now; a histogram's holds the totals since its process began and merges by addition. Units stand with the metric:
``tuples``, ``bytes``, ``s``, ``1``.
"""

from __future__ import annotations

import enum
from abc import abstractmethod
from dataclasses import dataclass, field

from heron.spi.driver import Driver

__all__ = [
    "CAPABILITIES",
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

CAPABILITIES = frozenset({"events", "files", "histograms", "history", "server"})
"""``events``: events are kept, not only metrics. ``histograms``: so are bounds and counts of histograms. ``history``:
every value is, also when the process that took it has ended; without it only the newest, while the process lives.
``files``: they go into files of the machine where it is used. ``server``: to one, which may be away."""


class MetricKind(enum.Enum):
    """How values of a metric combine over time and over tasks."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts by bucket; `bounds` are inclusive upper bounds, ascending, `counts` has one more for what is above."""

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
    """Which process a record is from; `component` and `task_id` are empty and 0 for the engine's own processes."""

    topology: str
    container_id: int
    process: str
    incarnation: int
    component: str = ""
    task_id: int = 0


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened: what, to whom, when (wall-clock seconds), caused by which other event (an id or "")."""

    id: str
    name: str
    at_s: float
    subject: str
    cause: str = ""
    attributes: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MetricsRecord:
    """What one process reports at one moment (wall-clock seconds)."""

    source: Source
    at_s: float
    metrics: tuple[Metric, ...] = ()
    events: tuple[Event, ...] = ()


class MetricsSink(Driver):
    """Takes records to a monitoring system.

    The metrics manager gives each sink a thread of its own and a bounded buffer: a sink that is slow or raises loses
    its own records, counted under its name, and delays nobody else. Source: Heron's ``IMetricsSink``.
    """

    @abstractmethod
    def process(self, record: MetricsRecord) -> None:
        """Takes one record: sends it, or keeps it for `flush`.

        Called by the metrics manager from the sink's own thread; may block, for 10 s at most. After an exception this
        record is lost and counted; whether a part of it arrived is unknown, and does not matter, as counters are
        totals. A `SinkError` says itself how many records are lost, and under which name that is counted. The next
        call is made all the same: whoever lost a connection makes it anew there.
        """

    @abstractmethod
    def flush(self) -> None:
        """After it returned, everything taken so far has left the process, or was reported lost by an exception.

        A sink that keeps records while its server is away raises a `SinkError` that has lost none; it tries again at a
        later flush. `heron.spi.sink_buffer` is what such a sink keeps them in.

        Called from the same thread after each export interval and before `close`; may block up to 10 s. What was
        flushed survives ``kill -9`` of the process.
        """

    @abstractmethod
    def close(self) -> None:
        """Gives up files and connections; what was flushed stays. Called last, from the same thread. Idempotent.

        May block up to 10 s. A sink that was opened and never used may be closed, too.
        """
