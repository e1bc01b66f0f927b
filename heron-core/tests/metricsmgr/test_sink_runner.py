"""A sink on its own thread: what it takes, what it loses, and whom that delays (nobody)."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from typing import Self

import pytest

from heron.errors import SinkError
from heron.ipc.metric_names import SINK_DROPPED, SINK_OUTAGE
from heron.metricsmgr.sink_runner import SinkRunner
from heron.spi.metricsink import MetricsRecord, MetricsSink, Source
from heron_testing.pytest_plugin import Eventually

RECORD = MetricsRecord(Source("wc", 1, "stmgr", 1), 1.0)


class TestSink(MetricsSink):
    """Remembers its calls; raises or waits where it is told to."""

    __test__ = False
    spi_version = 1

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.threads: set[int] = set()
        self.go_on = threading.Event()
        self.go_on.set()
        self.raises = ""
        self.error: Exception = OSError("no space left on device")

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        """No options."""
        assert not options
        return cls()

    def process(self, record: MetricsRecord) -> None:
        """Takes a record."""
        self._call("process")

    def flush(self) -> None:
        """Notes it."""
        self._call("flush")

    def close(self) -> None:
        """Notes it."""
        self._call("close")

    def _call(self, name: str) -> None:
        self.go_on.wait(10.0)
        self.threads.add(threading.get_ident())
        self.calls.append(name)
        if name == self.raises:
            raise self.error


@pytest.fixture
def sink() -> Iterator[TestSink]:
    """A sink that is released at the end, so that no thread stays."""
    found = TestSink()
    yield found
    found.go_on.set()


def dropped(runner: SinkRunner) -> dict[str, float]:
    """How much was dropped, by reason."""
    found: dict[str, float] = {}
    for metric in runner.metrics():
        if metric.name == SINK_DROPPED:
            assert isinstance(metric.value, int)
            found[metric.labels["reason"]] = metric.value
    return found


def outage_s(runner: SinkRunner) -> float:
    """For how long it has not worked."""
    (found,) = (metric.value for metric in runner.metrics() if metric.name == SINK_OUTAGE)
    assert isinstance(found, float)
    return found


def test_what_was_offered_before_the_close_is_processed_flushed_and_closed_in_one_thread(sink: TestSink) -> None:
    """The contract of the sinks: one thread, flush before close, close last."""
    runner = SinkRunner("test", sink, 60.0)
    for _ in range(5):
        runner.offer(RECORD)
    runner.close()
    assert runner.join(5.0)
    assert sink.calls == ["process"] * 5 + ["flush", "close"]
    assert len(sink.threads) == 1
    assert threading.get_ident() not in sink.threads


def test_a_slow_sink_loses_its_own_records_counted(sink: TestSink) -> None:
    """It must delay nobody, and not grow without bound (D12)."""
    sink.go_on.clear()
    runner = SinkRunner("test", sink, 60.0, queue_records=3)
    for _ in range(10):
        runner.offer(RECORD)
    assert 6 <= dropped(runner)["full"] <= 7
    sink.go_on.set()
    runner.close()
    assert runner.join(5.0)


def test_a_sink_that_raises_loses_that_record_and_goes_on(sink: TestSink) -> None:
    """Also where flush raises: the next record is tried again."""
    sink.raises = "process"
    runner = SinkRunner("test", sink, 60.0)
    runner.offer(RECORD)
    runner.offer(RECORD)
    runner.close()
    assert runner.join(5.0)
    assert dropped(runner) == {"full": 0, "failed": 2, "closed": 0}
    assert sink.calls[-1] == "close"


def test_a_sink_that_hangs_at_the_end_is_left_and_its_rest_counted(sink: TestSink) -> None:
    """The executor waits two seconds, then kills."""
    sink.go_on.clear()
    runner = SinkRunner("test", sink, 60.0)
    for _ in range(4):
        runner.offer(RECORD)
    runner.close()
    assert not runner.join(0.05)
    assert dropped(runner)["closed"] in {3, 4}


def test_it_flushes_each_interval(sink: TestSink, eventually: Eventually) -> None:
    """Also when nothing comes."""
    runner = SinkRunner("test", sink, 0.02)
    eventually(lambda: sink.calls.count("flush") >= 2)
    runner.close()
    assert runner.join(5.0)


def test_a_sink_says_itself_what_it_lost_and_why(sink: TestSink) -> None:
    """Only the sink knows how many records its buffer held, and that they did not fail one by one."""
    sink.raises = "process"
    sink.error = SinkError("the oldest is dropped", lost=7, reason="unsent")
    runner = SinkRunner("test", sink, 60.0)
    runner.offer(RECORD)
    runner.close()
    assert runner.join(5.0)
    assert dropped(runner) == {"full": 0, "failed": 0, "closed": 0, "unsent": 7}


def test_an_outage_lasts_until_a_flush_works(sink: TestSink, eventually: Eventually) -> None:
    """A sink that keeps its records loses none, and yet somebody should look after its server."""
    sink.raises = "flush"
    sink.error = SinkError("carbon does not answer")
    runner = SinkRunner("test", sink, 0.02)
    eventually(lambda: outage_s(runner) > 0.1)
    assert dropped(runner) == {"full": 0, "failed": 0, "closed": 0}
    sink.raises = ""
    eventually(lambda: outage_s(runner) == 0)
    runner.close()
    assert runner.join(5.0)
