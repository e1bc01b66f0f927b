"""The faults of the metrics sink suite: killed processes, and a system that is away, full or silent."""

from __future__ import annotations

import contextlib
import subprocess
from abc import abstractmethod
from collections.abc import Sequence

from heron.clock import wall_s
from heron.spi.metricsink import Metric, MetricKind, MetricsRecord, MetricsSink, Source
from heron_testing.contracts.driver import DriverContract, in_time, needed, requires
from heron_testing.contracts.parts.second_process import numbered, second_process
from heron_testing.faults import FULL_BYTES, Faults
from heron_testing.waiting import wait_until

__all__ = ["MetricsSinkFaultCases"]

_FLUSH_S = 10.0  # the contract's longest flush
_BACK_S = 30.0  # a client may wait between its attempts to connect
_FLUSHED = 50
_LATE = MetricsRecord(
    Source("words", 1, "late", 0), float(int(wall_s())), (Metric("late", MetricKind.GAUGE, "1", 1.0),)
)


class MetricsSinkFaultCases(DriverContract):
    """Part of `heron_testing.contracts.metricsink.MetricsSinkContract`."""

    family = "metricsink"

    @abstractmethod
    def metrics(self) -> Sequence[Metric]:
        """See `MetricsSinkContract.metrics`."""

    def test_flushed_records_survive_a_killed_process(self, sink: MetricsSink, options: dict[str, object]) -> None:
        """SIGKILL of a metrics manager loses only records that it had not flushed, and the next process can write."""
        requires(sink, "history")
        command = second_process(self.family, self.driver_class, options)
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            flushed = [int(process.stdout.readline()) for _ in range(_FLUSHED)]
            process.kill()
        sink.process(_LATE)
        sink.flush()
        wait_until(lambda: _LATE.metrics[0] in self.metrics(), _BACK_S, "the record of the next process arrived")
        values = [each.value for each in self.metrics() if each.name == "emitted"]
        assert values[: len(flushed)] == flushed

    def test_a_system_that_is_away_costs_only_its_own_records(self, sink: MetricsSink, faults: Faults) -> None:
        """The sink runner counts the errors. When the system is back, records arrive without a restart."""
        sink.process(numbered(1))
        sink.flush()
        with needed(sink, faults, "away")():
            for number in range(2, 5):
                self._feed(sink, number)
        wait_until(lambda: self._arrives(sink), _BACK_S, "records arrive again")
        assert self.metrics()[0] == numbered(1).metrics[0]

    def test_a_full_disk_spoils_nothing_that_was_kept(self, sink: MetricsSink, faults: Faults) -> None:
        """A line that was cut off must not damage the lines before and after it."""
        wide = Metric("wide", MetricKind.GAUGE, "1", 1.0, {"stream": "x" * (FULL_BYTES // 8)})
        sink.process(numbered(1))
        sink.flush()
        refused = 0
        with needed(sink, faults, "full")():
            for _ in range(32):
                try:
                    sink.process(MetricsRecord(_LATE.source, _LATE.at_s, (wide,)))
                    sink.flush()
                except Exception:  # an error of the sink loses only its record
                    refused += 1
        assert refused, "the sink did not report the records that it could not keep"
        wait_until(lambda: self._arrives(sink), _BACK_S, "records arrive again")
        assert self.metrics()[0] == numbered(1).metrics[0]

    def test_a_silent_system_is_given_up_in_time(self, sink: MetricsSink, faults: Faults) -> None:
        """A flush that never returns would prevent the end of the metrics manager."""
        sink.process(numbered(1))
        sink.flush()
        with needed(sink, faults, "silent")():
            self._feed(sink, 2)
        wait_until(lambda: self._arrives(sink), _BACK_S, "records arrive again")

    def test_lost_answers_lose_no_later_record(self, sink: MetricsSink, faults: Faults) -> None:
        """The system may then have a record twice. Counters are totals, so readers see the same value."""
        with needed(sink, faults, "answers_lost")():
            self._feed(sink, 1)
        wait_until(lambda: self._arrives(sink), _BACK_S, "records arrive again")

    def _feed(self, sink: MetricsSink, number: int) -> None:
        with in_time(_FLUSH_S), contextlib.suppress(Exception):
            sink.process(numbered(number))
        with in_time(_FLUSH_S), contextlib.suppress(Exception):
            sink.flush()

    def _arrives(self, sink: MetricsSink) -> bool:
        try:
            sink.process(_LATE)
            sink.flush()
        except Exception:  # not yet
            return False
        return _LATE.metrics[0] in self.metrics()
