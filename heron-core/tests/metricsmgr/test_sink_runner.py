"""A sink on its own thread: which records it processes, which it loses, and what the status says about it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping
from typing import Self

import pytest

from heron.errors import PluginError, SinkError
from heron.ipc.documents.metric_names import SINK_DROPPED, SINK_OUTAGE
from heron.metricsmgr.sink_runner import HANG_S, SinkRunner
from heron.spi.metricsink import MetricsRecord, MetricsSink, Source
from heron_testing.fake_clock import FakeClock
from heron_testing.waiting import Eventually, wait_until

RECORD = MetricsRecord(Source("wc", 1, "stmgr", 1), 1.0)
FLUSH_S = 60.0


class TestSink(MetricsSink):
    """Remembers its calls; raises or blocks in the calls that a test chooses."""

    __test__ = False
    spi_version = 1

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.threads: set[int] = set()
        self.go_on = threading.Event()
        self.go_on.set()
        self.blocks = ""  # the call that blocks; "" for all
        self.blocked = threading.Event()
        self.raises = ""
        self.error: BaseException = OSError("no space left on device")

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        assert not options
        return cls()

    def process(self, record: MetricsRecord) -> None:
        self._call("process")

    def flush(self) -> None:
        self._call("flush")

    def close(self) -> None:
        self._call("close")

    def _call(self, name: str) -> None:
        if self.blocks in {"", name} and not self.go_on.is_set():
            self.blocked.set()
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


@pytest.fixture
def clock() -> FakeClock:
    """The time of the runner."""
    return FakeClock()


@pytest.fixture
def runner(sink: TestSink, clock: FakeClock) -> Iterator[SinkRunner]:
    """A runner that flushes when a test moves the clock by `FLUSH_S` and offers a record."""
    made = SinkRunner("test", lambda: sink, FLUSH_S, clock=clock)
    yield made
    sink.go_on.set()
    made.close()
    assert made.join(5.0)


def flush_due(runner: SinkRunner, clock: FakeClock) -> None:
    """Let the time of the next flush come, and wake the thread of the sink."""
    clock.advance(FLUSH_S)
    runner.offer(RECORD)


def dropped(runner: SinkRunner) -> dict[str, float]:
    """The number of dropped records, by reason."""
    found: dict[str, float] = {}
    for metric in runner.metrics():
        if metric.name == SINK_DROPPED:
            assert isinstance(metric.value, int)
            found[metric.labels["reason"]] = metric.value
    return found


def outage_s(runner: SinkRunner) -> float:
    """For how long the sink has delivered nothing."""
    (found,) = (metric.value for metric in runner.metrics() if metric.name == SINK_OUTAGE)
    assert isinstance(found, float)
    return found


def test_offered_records_are_processed_flushed_and_the_sink_is_closed_in_one_thread(sink: TestSink) -> None:
    """The contract of sinks: one thread, flush before close, close last."""
    runner = SinkRunner("test", lambda: sink, FLUSH_S)
    for _ in range(5):
        runner.offer(RECORD)
    runner.close()
    assert runner.join(5.0)
    assert sink.calls == ["process"] * 5 + ["flush", "close"]
    assert len(sink.threads) == 1
    assert threading.get_ident() not in sink.threads


def test_a_slow_sink_loses_its_own_records_and_they_are_counted(sink: TestSink) -> None:
    """The sink must not delay another process, and its queue must stay bounded."""
    sink.go_on.clear()
    runner = SinkRunner("test", lambda: sink, FLUSH_S, queue_records=3)
    for _ in range(10):
        runner.offer(RECORD)
    assert 6 <= dropped(runner)["full"] <= 7
    sink.go_on.set()
    runner.close()
    assert runner.join(5.0)


def test_a_sink_that_cannot_be_opened_is_named_and_its_records_count_as_dropped() -> None:
    """Its container has metrics all the same, and the status shows the reason."""

    def refuse() -> MetricsSink:
        message = "metricsink driver 'test' does not open: no server"
        raise PluginError(message)

    runner = SinkRunner("test", refuse, FLUSH_S)
    runner.offer(RECORD)
    wait_until(lambda: runner.problem() == "open: PluginError: metricsink driver 'test' does not open: no server")
    wait_until(lambda: any(each.value == 1 and each.labels["reason"] == "failed" for each in runner.metrics()[:3]))
    runner.close()
    assert runner.join(5.0)


def test_a_sink_that_hangs_while_it_is_opened_is_named(clock: FakeClock) -> None:
    """It stops neither the metrics manager nor the other sinks."""
    opening, opened = threading.Event(), threading.Event()

    def hang() -> MetricsSink:
        opening.set()
        opened.wait()
        message = "the test is over"
        raise PluginError(message)

    runner = SinkRunner("test", hang, FLUSH_S, clock=clock)
    assert opening.wait(5.0)
    clock.advance(HANG_S)
    assert runner.problem() == "open has not returned for more than 8 s"
    runner.close()
    opened.set()
    assert runner.join(5.0)


@pytest.mark.parametrize("error", [SystemExit(1), ValueError("no")])
def test_a_sink_that_ends_the_interpreter_only_fails(sink: TestSink, error: BaseException) -> None:
    """Its thread would end without a word, and the status would call it slow."""
    sink.raises, sink.error = "flush", error
    runner = SinkRunner("test", lambda: sink, 0.02)
    wait_until(lambda: runner.problem().startswith(f"flush: {type(error).__name__}"))
    sink.raises = ""
    runner.close()
    assert runner.join(5.0)


def test_a_sink_that_raises_in_process_loses_that_record_and_continues(sink: TestSink) -> None:
    """The next record is tried again: the sink may connect again then."""
    sink.raises = "process"
    runner = SinkRunner("test", lambda: sink, FLUSH_S)
    runner.offer(RECORD)
    runner.offer(RECORD)
    runner.close()
    assert runner.join(5.0)
    assert dropped(runner) == {"full": 0, "failed": 2, "closed": 0}
    assert sink.calls[-1] == "close"


def test_a_sink_that_hangs_at_the_end_is_abandoned_and_its_queue_counted(sink: TestSink) -> None:
    """The executor waits two seconds, and then kills the metrics manager."""
    sink.go_on.clear()
    runner = SinkRunner("test", lambda: sink, FLUSH_S)
    for _ in range(4):
        runner.offer(RECORD)
    runner.close()
    assert not runner.join(0.05)
    assert dropped(runner)["closed"] in {3, 4}


def test_the_sink_is_flushed_each_interval_without_records(sink: TestSink, eventually: Eventually) -> None:
    """Records that a sink keeps must not wait for the next record."""
    runner = SinkRunner("test", lambda: sink, 0.02)
    eventually(lambda: sink.calls.count("flush") >= 2)
    runner.close()
    assert runner.join(5.0)


def test_a_sink_states_its_losses_and_their_reason_itself(sink: TestSink) -> None:
    """Only the sink knows how many records its buffer held."""
    sink.raises = "process"
    sink.error = SinkError("the oldest records are dropped", lost=7, reason="unsent")
    runner = SinkRunner("test", lambda: sink, FLUSH_S)
    runner.offer(RECORD)
    runner.close()
    assert runner.join(5.0)
    assert dropped(runner) == {"full": 0, "failed": 0, "closed": 0, "unsent": 7}


def test_an_outage_lasts_until_a_flush_succeeds(
    sink: TestSink, runner: SinkRunner, clock: FakeClock, eventually: Eventually
) -> None:
    """A sink that keeps its records loses none, but an operator should look at its server."""
    sink.raises, sink.error = "flush", SinkError("carbon does not answer")
    flush_due(runner, clock)
    eventually(lambda: runner.problem() == "flush: carbon does not answer")
    assert outage_s(runner) == FLUSH_S
    assert dropped(runner) == {"full": 0, "failed": 0, "closed": 0}
    sink.raises = ""
    flush_due(runner, clock)
    eventually(lambda: runner.problem() == "")
    assert outage_s(runner) == 0


def test_an_unexpected_error_in_flush_is_the_reason_and_costs_all_records_since_the_last_flush(
    sink: TestSink, runner: SinkRunner, clock: FakeClock, eventually: Eventually
) -> None:
    """The sink does not say what happened to them. Each record is counted once, however many flushes fail."""
    flush_due(runner, clock)
    eventually(lambda: sink.calls == ["process", "flush"])
    sink.raises = "flush"
    runner.offer(RECORD)
    runner.offer(RECORD)
    flush_due(runner, clock)
    eventually(lambda: runner.problem() == "flush: OSError: no space left on device")
    assert dropped(runner)["failed"] == 3
    flush_due(runner, clock)
    eventually(lambda: dropped(runner)["failed"] == 4)
    assert outage_s(runner) == 2 * FLUSH_S
    sink.raises = ""
    flush_due(runner, clock)
    eventually(lambda: runner.problem() == "")
    assert dropped(runner)["failed"] == 4


@pytest.mark.parametrize("call", ["process", "flush"])
def test_a_call_that_hangs_is_named_within_10_s_and_so_is_its_end(
    sink: TestSink,
    runner: SinkRunner,
    clock: FakeClock,
    eventually: Eventually,
    caplog: pytest.LogCaptureFixture,
    call: str,
) -> None:
    """The metrics manager checks each second; the status and the log name the sink before 10 s are over."""
    caplog.set_level(logging.INFO)
    sink.blocks = call
    sink.go_on.clear()
    flush_due(runner, clock)
    assert sink.blocked.wait(5.0)
    clock.advance(HANG_S - 0.1)
    assert not runner.check()
    clock.advance(0.1)
    assert HANG_S + 1.0 < 10.0
    assert runner.check()
    assert runner.problem() == f"{call} has not returned for more than 8 s"
    assert outage_s(runner) == FLUSH_S + HANG_S
    assert f"sink test hangs and delivers nothing: {call} has not returned for more than 8 s" in caplog.messages
    clock.advance(60.0)
    assert not runner.check()
    sink.go_on.set()
    eventually(lambda: "flush" in sink.calls and runner.problem() == "")
    assert runner.check()
    assert "sink test delivers again" in caplog.messages
    assert outage_s(runner) == 0


def test_a_sink_that_never_reaches_its_flush_has_an_outage(sink: TestSink, clock: FakeClock) -> None:
    """No single call hangs, but records arrive faster than the sink processes them."""
    runner = SinkRunner("test", lambda: sink, FLUSH_S, clock=clock)
    clock.advance(FLUSH_S + 10.1)
    assert runner.problem() == "too slow: records arrive faster than the sink takes them"
    runner.close()
    assert runner.join(5.0)
    assert runner.problem() == ""


def test_the_reason_is_one_short_line_without_secrets(sink: TestSink, clock: FakeClock, eventually: Eventually) -> None:
    """Libraries put credentials and whole pages into their errors, and everyone may read the status."""
    runner = SinkRunner("test", lambda: sink, FLUSH_S, secrets=("pa55word",), clock=clock)
    sink.raises, sink.error = "flush", SinkError("http://me:pa55word@graphite\nrefused" + "!" * 1000)
    flush_due(runner, clock)
    eventually(lambda: runner.problem() != "")
    assert runner.problem().startswith("flush: http://me:(secret)@graphite refused!")
    assert len(runner.problem()) == 300
    runner.close()
    assert runner.join(5.0)


def test_only_the_record_for_the_topology_manager_carries_the_reason(
    sink: TestSink, runner: SinkRunner, clock: FakeClock, eventually: Eventually
) -> None:
    """A monitoring system would make a new time series of each text."""
    sink.raises = "flush"
    flush_due(runner, clock)
    eventually(lambda: runner.problem() != "")
    reason = "flush: OSError: no space left on device"
    assert [each.labels for each in runner.metrics() if each.name == SINK_OUTAGE] == [{"sink": "test"}]
    labels = [each.labels for each in runner.metrics(with_problem=True) if each.name == SINK_OUTAGE]
    assert labels == [{"sink": "test", "reason": reason}]
