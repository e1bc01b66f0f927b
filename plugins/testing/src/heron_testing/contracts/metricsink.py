"""The contract suite of metrics sinks."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence

import pytest

from heron.clock import wall_s
from heron.spi.metricsink import Event, Histogram, Metric, MetricKind, MetricsRecord, MetricsSink, Source
from heron_testing.contracts.driver import requires
from heron_testing.contracts.fault_cases.metricsink_faults import MetricsSinkFaultCases

__all__ = ["MetricsSinkContract"]

SOURCE = Source("words", 1, "instance-3", 0, "count", 3)
ENGINE = Source("words", 1, "stmgr", 2)
EMITTED = Metric("emitted", MetricKind.COUNTER, "tuples", 12.0, {"stream": "default"})
QUEUE = Metric("queue", MetricKind.GAUGE, "bytes", 0.5)
LATENCY = Metric("latency", MetricKind.HISTOGRAM, "s", Histogram((0.001, 0.01), (1, 2, 3), 0.25))
AT_S = float(int(wall_s()) - 600)
"""The time of the first record. Systems that keep a history refuse old records and keep one value for each second."""
STARTED = Event("e1", "process_started", 1_700_000_000.5, "stmgr-1", "e0", {"attempt": "2"})


class MetricsSinkContract(MetricsSinkFaultCases):
    """Subclass it with the attributes of `DriverContract`, `metrics`, `events`, and the fixtures of the driver."""

    @abstractmethod
    def metrics(self) -> Sequence[Metric]:
        """Return all metrics in the monitoring system, ordered by time, and within a record by name.

        Histograms are included only if the driver declares ``histograms``.
        """

    @abstractmethod
    def events(self) -> Sequence[Event]:
        """Return all events in the monitoring system, in order of arrival."""

    @pytest.fixture
    def sink(self, options: dict[str, object]) -> Iterator[MetricsSink]:
        """The driver under test; the fixture closes it at the end."""
        driver = self.driver_class.open(options)
        assert isinstance(driver, MetricsSink)
        yield driver
        driver.close()

    def test_metrics_arrive(self, sink: MetricsSink) -> None:
        """A reader of a chart needs name, kind, unit, value and labels."""
        sink.process(MetricsRecord(SOURCE, AT_S, (EMITTED, QUEUE)))
        sink.flush()
        assert list(self.metrics()) == [EMITTED, QUEUE]

    def test_histograms_arrive_whole(self, sink: MetricsSink) -> None:
        """Histograms of several tasks can be added only with their bounds and counts."""
        requires(sink, "histograms")
        sink.process(MetricsRecord(SOURCE, AT_S, (LATENCY,)))
        sink.flush()
        assert list(self.metrics()) == [LATENCY]

    def test_histograms_disturb_nothing(self, sink: MetricsSink) -> None:
        """A sink that cannot keep histograms still keeps the other metrics of the record."""
        sink.process(MetricsRecord(SOURCE, AT_S, (LATENCY, EMITTED)))
        sink.flush()
        assert EMITTED in self.metrics()

    def test_events_arrive(self, sink: MetricsSink) -> None:
        """The event log needs the event, its subject and its cause."""
        requires(sink, "events")
        sink.process(MetricsRecord(ENGINE, AT_S, (), (STARTED,)))
        sink.flush()
        assert list(self.events()) == [STARTED]

    def test_events_disturb_nothing(self, sink: MetricsSink) -> None:
        """A sink without events still keeps the metrics of the record."""
        sink.process(MetricsRecord(ENGINE, AT_S, (EMITTED,), (STARTED,)))
        sink.flush()
        assert list(self.metrics()) == [EMITTED]

    def test_record_without_anything_is_fine(self, sink: MetricsSink) -> None:
        """A process without metrics and events sends an empty record."""
        sink.process(MetricsRecord(ENGINE, AT_S))
        sink.flush()
        assert list(self.metrics()) == []

    def test_order_is_kept(self, sink: MetricsSink) -> None:
        """Counters only grow, so a reader takes a smaller value for a restart."""
        sent = [Metric("emitted", MetricKind.COUNTER, "tuples", float(value)) for value in range(100)]
        for second, each in enumerate(sent):
            sink.process(MetricsRecord(SOURCE, AT_S + second, (each,)))
        sink.flush()
        assert list(self.metrics()) == (sent if "history" in sink.capabilities else sent[-1:])

    @pytest.mark.parametrize("text", ['"', "\n", "\\", "{}", "ä→", " ", "a,b=c;d|e#f", "\0"])
    def test_hostile_label_spoils_no_other_metric(self, sink: MetricsSink, text: str) -> None:
        """Labels hold the names that users give their streams, and no name may break the format."""
        sink.process(MetricsRecord(SOURCE, AT_S, (Metric("n", MetricKind.GAUGE, "1", 1.0, {"stream": text}),)))
        sink.process(MetricsRecord(SOURCE, AT_S + 1, (EMITTED,)))
        sink.flush()
        assert EMITTED in self.metrics()

    def test_close_keeps_processed_records(self, sink: MetricsSink) -> None:
        """People look at the last values of a run most often."""
        requires(sink, "history")
        sink.process(MetricsRecord(SOURCE, AT_S, (EMITTED,)))
        sink.flush()
        sink.close()
        assert list(self.metrics()) == [EMITTED]

    def test_close_is_idempotent(self, sink: MetricsSink) -> None:
        """A metrics manager that fails while it stops closes its sinks twice."""
        sink.close()
        sink.close()

    def test_next_run_appends(self, sink: MetricsSink, options: dict[str, object]) -> None:
        """A restarted metrics manager must keep the records of the attempt before."""
        requires(sink, "history")
        sink.process(MetricsRecord(SOURCE, AT_S, (EMITTED,)))
        sink.flush()
        sink.close()
        following = self.driver_class.open(options)
        assert isinstance(following, MetricsSink)
        following.process(MetricsRecord(SOURCE, AT_S + 1, (QUEUE,)))
        following.flush()
        following.close()
        assert list(self.metrics()) == [EMITTED, QUEUE]
