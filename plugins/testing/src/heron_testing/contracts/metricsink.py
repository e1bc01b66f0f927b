"""The contract of the metrics sink family as tests."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence

import pytest

from heron.clock import wall_s
from heron.spi.metricsink import Event, Histogram, Metric, MetricKind, MetricsRecord, MetricsSink, Source
from heron_testing.contracts.driver import requires
from heron_testing.contracts.metricsink_faults import MetricsSinkFaultCases

__all__ = ["MetricsSinkContract"]

SOURCE = Source("words", 1, "instance-3", 0, "count", 3)
ENGINE = Source("words", 1, "stmgr", 2)
EMITTED = Metric("emitted", MetricKind.COUNTER, "tuples", 12.0, {"stream": "default"})
QUEUE = Metric("queue", MetricKind.GAUGE, "bytes", 0.5)
LATENCY = Metric("latency", MetricKind.HISTOGRAM, "s", Histogram((0.001, 0.01), (1, 2, 3), 0.25))
AT_S = float(int(wall_s()) - 600)
"""The time of the first record: systems that keep a history refuse what is too old, and keep one value a second."""
STARTED = Event("e1", "process_started", 1_700_000_000.5, "stmgr-1", "e0", {"attempt": "2"})


class MetricsSinkContract(MetricsSinkFaultCases):
    """Subclass it with the attributes of `DriverContract`, its fixtures `options` and `faults`, `metrics`, `events`."""

    @abstractmethod
    def metrics(self) -> Sequence[Metric]:
        """All metrics that have reached the monitoring system, in order of their time, those of one record by name.

        Histograms only where they are kept.
        """

    @abstractmethod
    def events(self) -> Sequence[Event]:
        """All events that have reached the monitoring system, in order."""

    @pytest.fixture
    def sink(self, options: dict[str, object]) -> Iterator[MetricsSink]:
        """The driver under test, closed at the end."""
        driver = self.driver_class.open(options)
        assert isinstance(driver, MetricsSink)
        yield driver
        driver.close()

    def test_metrics_arrive(self, sink: MetricsSink) -> None:
        """Name, kind, unit, value and labels are what a reader needs to draw a figure."""
        sink.process(MetricsRecord(SOURCE, AT_S, (EMITTED, QUEUE)))
        sink.flush()
        assert list(self.metrics()) == [EMITTED, QUEUE]

    def test_histograms_arrive_whole(self, sink: MetricsSink) -> None:
        """Only with bounds and counts can histograms of several tasks be added up."""
        requires(sink, "histograms")
        sink.process(MetricsRecord(SOURCE, AT_S, (LATENCY,)))
        sink.flush()
        assert list(self.metrics()) == [LATENCY]

    def test_histograms_disturb_nothing(self, sink: MetricsSink) -> None:
        """A sink that cannot keep them still keeps the metrics beside them."""
        sink.process(MetricsRecord(SOURCE, AT_S, (LATENCY, EMITTED)))
        sink.flush()
        assert EMITTED in self.metrics()

    def test_events_arrive(self, sink: MetricsSink) -> None:
        """The event log tells what happened, to whom, and because of what."""
        requires(sink, "events")
        sink.process(MetricsRecord(ENGINE, AT_S, (), (STARTED,)))
        sink.flush()
        assert list(self.events()) == [STARTED]

    def test_events_disturb_nothing(self, sink: MetricsSink) -> None:
        """A sink without events takes the metrics of a record that has both."""
        sink.process(MetricsRecord(ENGINE, AT_S, (EMITTED,), (STARTED,)))
        sink.flush()
        assert list(self.metrics()) == [EMITTED]

    def test_record_without_anything_is_fine(self, sink: MetricsSink) -> None:
        """A process that has nothing to report reports that."""
        sink.process(MetricsRecord(ENGINE, AT_S))
        sink.flush()
        assert list(self.metrics()) == []

    def test_order_is_kept(self, sink: MetricsSink) -> None:
        """Counters only grow; a reader that sees them shrink thinks of a restart."""
        sent = [Metric("emitted", MetricKind.COUNTER, "tuples", float(value)) for value in range(100)]
        for second, each in enumerate(sent):
            sink.process(MetricsRecord(SOURCE, AT_S + second, (each,)))
        sink.flush()
        assert list(self.metrics()) == (sent if "history" in sink.capabilities else sent[-1:])

    @pytest.mark.parametrize("text", ['"', "\n", "\\", "{}", "ä→", " ", "a,b=c;d|e#f", "\0"])
    def test_hostile_label_spoils_no_other_metric(self, sink: MetricsSink, text: str) -> None:
        """Labels hold what users call their streams; none of it may break the format."""
        sink.process(MetricsRecord(SOURCE, AT_S, (Metric("n", MetricKind.GAUGE, "1", 1.0, {"stream": text}),)))
        sink.process(MetricsRecord(SOURCE, AT_S + 1, (EMITTED,)))
        sink.flush()
        assert EMITTED in self.metrics()

    def test_close_keeps_what_was_taken(self, sink: MetricsSink) -> None:
        """The last figures of a run are the ones people look at."""
        requires(sink, "history")
        sink.process(MetricsRecord(SOURCE, AT_S, (EMITTED,)))
        sink.flush()
        sink.close()
        assert list(self.metrics()) == [EMITTED]

    def test_close_is_idempotent(self, sink: MetricsSink) -> None:
        """A manager that stops while it fails closes twice."""
        sink.close()
        sink.close()

    def test_next_run_appends(self, sink: MetricsSink, options: dict[str, object]) -> None:
        """A metrics manager that was started again must not wipe out what its last life reported."""
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
