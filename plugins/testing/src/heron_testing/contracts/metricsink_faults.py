"""The faults of the metrics sink's contract: killed processes, and a system that is away, full or silent."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from abc import abstractmethod
from collections.abc import Sequence

from heron.clock import wall_s
from heron.spi.metricsink import Metric, MetricKind, MetricsRecord, MetricsSink, Source
from heron_testing.contracts.driver import DriverContract, in_time, needed, requires
from heron_testing.contracts.metricsink_actor import numbered
from heron_testing.faults import FULL_BYTES, Faults
from heron_testing.pytest_plugin import wait_until

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

    def test_what_was_flushed_survives_a_killed_process(self, sink: MetricsSink, options: dict[str, object]) -> None:
        """kill -9 of a metrics manager loses what it had not flushed, and spoils nothing for the next one."""
        requires(sink, "history")
        entry = f"{self.driver_class.__module__}:{self.driver_class.__qualname__}"
        command = [sys.executable, "-m", "heron_testing.contracts.metricsink_actor", entry, json.dumps(options)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as actor:
            assert actor.stdout is not None
            said = [int(actor.stdout.readline()) for _ in range(_FLUSHED)]
            actor.kill()
        sink.process(_LATE)
        sink.flush()
        wait_until(lambda: _LATE.metrics[0] in self.metrics(), _BACK_S, "the next process's record arrived")
        values = [each.value for each in self.metrics() if each.name == "emitted"]
        assert values[: len(said)] == said

    def test_a_system_that_is_away_costs_only_its_own_records(self, sink: MetricsSink, faults: Faults) -> None:
        """Errors are the sink runner's to count; once the system is back, records arrive again without a restart."""
        sink.process(numbered(1))
        sink.flush()
        with needed(sink, faults, "away")():
            for number in range(2, 5):
                self._feed(sink, number)
        wait_until(lambda: self._arrives(sink), _BACK_S, "records arrive again")
        assert self.metrics()[0] == numbered(1).metrics[0]

    def test_a_full_disk_spoils_nothing_that_was_kept(self, sink: MetricsSink, faults: Faults) -> None:
        """A line that was cut short must not swallow the next one, nor the ones before it."""
        wide = Metric("wide", MetricKind.GAUGE, "1", 1.0, {"stream": "x" * (FULL_BYTES // 8)})
        sink.process(numbered(1))
        sink.flush()
        refused = 0
        with needed(sink, faults, "full")():
            for _ in range(32):
                try:
                    sink.process(MetricsRecord(_LATE.source, _LATE.at_s, (wide,)))
                    sink.flush()
                except Exception:  # any error of the sink's loses its record only
                    refused += 1
        assert refused, "what cannot be kept has to be said, or nobody counts it"
        wait_until(lambda: self._arrives(sink), _BACK_S, "records arrive again")
        assert self.metrics()[0] == numbered(1).metrics[0]

    def test_a_silent_system_is_given_up_in_time(self, sink: MetricsSink, faults: Faults) -> None:
        """A flush that never returns would keep the metrics manager from ending."""
        sink.process(numbered(1))
        sink.flush()
        with needed(sink, faults, "silent")():
            self._feed(sink, 2)
        wait_until(lambda: self._arrives(sink), _BACK_S, "records arrive again")

    def test_lost_answers_cost_nobody_else_anything(self, sink: MetricsSink, faults: Faults) -> None:
        """A record may then be there twice: counters are totals, so a reader sees the same figure."""
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
