"""Watermarks in one process: windows of event time over two spouts, as on several processes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from heron.api import Bolt, Grouping, Spout, TopologyBuilder, TopologyContext, Tuple, api_constants
from heron_simulator import Simulation
from heron_testing.fake_clock import FakeClock

WINDOW_S = 10
LAST_S = 40


class TimedSpout(Spout):
    """Task 0 emits the times 0 to 39, task 1 only 0 to 14; then it is idle and says so until task 0 has ended."""

    outputs = ("time_s", "task")

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        self.task = context.get_task_index()
        self.time_s = 0
        self.idle_calls = 0

    def next_tuple(self) -> None:
        if self.task == 1 and self.time_s == 15:
            self.emit_watermark(15, idle=True)
            self.idle_calls += 1
            if self.idle_calls == 200:
                self.end()
        elif self.time_s == LAST_S:
            self.end()
        else:
            self.emit([self.time_s, self.task], tup_id=(self.task, self.time_s))
            self.time_s += 1
            self.emit_watermark(self.time_s)


class WindowBolt(Bolt):
    """Counts the rows of each window of event time, and emits it when the watermark has passed its end."""

    outputs = ("end_s", "rows")
    fails_at = -1.0

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        self.windows: Counter[int] = Counter()
        self.times: list[float] = []

    def process(self, tup: Tuple) -> None:
        self.windows[(tup.values[0] // WINDOW_S + 1) * WINDOW_S] += 1
        self.ack(tup)

    def process_watermark(self, time_s: float) -> None:
        self.times.append(time_s)
        for end_s in sorted(end_s for end_s in self.windows if end_s <= time_s):
            self.emit([end_s, self.windows.pop(end_s)])
        assert time_s != self.fails_at, "failed as told"


class FailingBolt(WindowBolt):
    """Fails in one call, after its emits."""

    fails_at = 20.0


class LastBolt(Bolt):
    """Keeps what it receives and hears, in order."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        self.heard: list[object] = []

    def process(self, tup: Tuple) -> None:
        self.heard.append(tup.values)
        self.ack(tup)

    def process_watermark(self, time_s: float) -> None:
        if time_s % WINDOW_S == 0:
            self.heard.append(time_s)


def windows(mode: str, window: type[Bolt] = WindowBolt) -> TopologyBuilder:
    """Two spout tasks, a bolt with windows, and a bolt behind it."""
    builder = TopologyBuilder("windows")
    timed = builder.add_spout("timed", TimedSpout, 2)
    counted = builder.add_bolt("counted", window, 1, {timed: Grouping.SHUFFLE})
    builder.add_bolt("last", LastBolt, 1, {counted: Grouping.SHUFFLE})
    builder.set_config({api_constants.TOPOLOGY_RELIABILITY_MODE: mode})
    return builder


EXPECTED = [(10, 20), 10.0, (20, 15), 20.0, (30, 10), 30.0, (40, 10), 40.0]


@pytest.mark.parametrize("mode", ["ATMOST_ONCE", "ATLEAST_ONCE"])
@pytest.mark.parametrize("seed", [None, 1, 2])
def test_each_window_closes_once_with_all_its_rows(mode: str, seed: int | None) -> None:
    """A spout that is idle holds nothing back, whatever the order of the turns; watermarks change no acks."""
    with Simulation(windows(mode), clock=FakeClock(), seed=seed) as simulation:
        simulation.run_until_finished(max_steps=2_000)
        last = simulation.component("last")
        assert isinstance(last, LastBolt)
        assert last.heard == EXPECTED
        counts = simulation.counts()
        assert (counts["timed"].emitted, counts["timed"].failed, counts["counted"].emitted) == (55, 0, 4)


def test_times_grow_and_reach_the_end() -> None:
    """No time comes twice, although the idle spout repeats its watermark at each call."""
    with Simulation(windows("ATMOST_ONCE"), clock=FakeClock()) as simulation:
        simulation.run_until_finished(max_steps=2_000)
        counted = simulation.component("counted")
        assert isinstance(counted, WindowBolt)
        assert counted.times == sorted(set(counted.times))
        assert counted.times[-1] == LAST_S


def test_an_exception_leaves_the_event_time_going() -> None:
    """As an exception in `process_tick` does; it is shown."""
    with Simulation(windows("ATMOST_ONCE", FailingBolt), clock=FakeClock()) as simulation:
        simulation.run_until_finished(max_steps=2_000)
        last = simulation.component("last")
        assert isinstance(last, LastBolt)
        assert last.heard == EXPECTED
        (error,) = simulation.errors()
        assert "process_watermark" in error
        assert "failed as told" in error
