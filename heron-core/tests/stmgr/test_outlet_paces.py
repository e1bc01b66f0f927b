"""With checkpoints, an outlet holds what leaves it in half a second: a marker does not wait for more."""

from __future__ import annotations

import pytest

from heron.stmgr.outlet import Outlet, Watermarks
from heron.stmgr.outlet_paces import OutletPaces

MARKS = Watermarks(low_bytes=4_000_000, high_bytes=8_000_000, hard_bytes=16_000_000)
LEAST_BYTES = 64_000
TARGET_S = 0.5
LOOK_S = 0.1
SEGMENT = b"x" * 10_000


class Flow:
    """An outlet with a producer and a task. The producer fills it until it is congested; the task has a pace."""

    def __init__(self) -> None:
        self.paces = OutletPaces(MARKS, LEAST_BYTES, TARGET_S)
        self.outlet = Outlet(7, MARKS)
        self.outlet.open(1_000_000)
        self.now_s = 100.0
        self._owed = 0.0

    def run(self, seconds: float, taken_per_s: float, *, produces: bool = True) -> None:
        """Time passes, with a look each 0.1 s."""
        for _ in range(round(seconds / LOOK_S)):
            while produces and not self.outlet.congested:
                self.outlet.put(SEGMENT)
            self._owed += taken_per_s * LOOK_S
            while self._owed >= len(SEGMENT) and self.outlet.ready() is not None:
                assert self.outlet.window is not None
                self.outlet.pop(len(SEGMENT))
                self.outlet.window.release(self.outlet.window.sent_bytes)
                self._owed -= len(SEGMENT)
                while produces and not self.outlet.congested:
                    self.outlet.put(SEGMENT)
            self.now_s += LOOK_S
            self.paces.adapt([self.outlet], self.now_s)


@pytest.mark.parametrize("pace", [300_000, 2_000_000, 10_000_000])
def test_what_waits_leaves_within_the_target(pace: int) -> None:
    """The outlet holds the configured amount at first, and has fallen to the target soon."""
    flow = Flow()
    flow.run(0.1, pace)
    assert flow.outlet.queued_bytes > 6_000_000
    flow.run(30.0, pace)
    waits_s = flow.outlet.queued_bytes / pace
    assert TARGET_S / 4 < waits_s < TARGET_S * 1.3


def test_the_outlet_of_a_task_that_stands_still_keeps_room_for_the_least() -> None:
    """Its pace is 0, but a task that goes on must find work."""
    flow = Flow()
    flow.run(1.0, 1_000_000)
    flow.run(5.0, 0)
    flow.run(LOOK_S, 100_000_000, produces=False)
    assert not flow.outlet.queue
    while not flow.outlet.congested:
        flow.outlet.put(SEGMENT)
    assert LEAST_BYTES < flow.outlet.queued_bytes < 4 * LEAST_BYTES


def test_a_queue_that_runs_dry_gets_the_configured_watermarks_again() -> None:
    """Then the limit may be what holds the producer up."""
    flow = Flow()
    flow.run(30.0, 300_000)
    flow.run(3.0, 50_000_000, produces=False)
    assert not flow.outlet.queue
    while not flow.outlet.congested:
        flow.outlet.put(SEGMENT)
    assert flow.outlet.queued_bytes > MARKS.high_bytes


def test_the_outlet_of_a_task_that_restarts_is_wide_again() -> None:
    """It may have stood still before, and its next process need not."""
    flow = Flow()
    flow.run(1.0, 1_000_000)
    flow.run(5.0, 0)
    flow.outlet.close()
    flow.run(LOOK_S, 0, produces=False)
    flow.outlet.open(100_000_000)
    flow.run(LOOK_S, 100_000_000, produces=False)
    assert not flow.outlet.queue
    flow.run(LOOK_S, 0)
    assert flow.outlet.queued_bytes > MARKS.low_bytes


def test_a_task_that_does_not_run_tells_no_pace() -> None:
    """Its data waits for the restart; the next session counts from 0."""
    flow = Flow()
    flow.run(5.0, 2_000_000)
    flow.outlet.close()
    flow.run(5.0, 2_000_000, produces=False)
    flow.outlet.open(1_000_000)
    flow.run(30.0, 2_000_000)
    assert flow.outlet.queued_bytes / 2_000_000 < TARGET_S * 1.3


def test_outlets_rest_until_data_waits_in_them() -> None:
    """No look is needed meanwhile, however long that is: the time of a rest tells no pace."""
    flow = Flow()
    flow.run(1.0, 1_000_000)
    rests = [flow.paces.rest]
    flow.run(3.0, 100_000_000, produces=False)
    rests.append(flow.paces.rest)
    flow.now_s += 100.0
    flow.run(LOOK_S, 0)
    assert [*rests, flow.paces.rest] == [False, True, False]
    assert flow.outlet.queued_bytes > MARKS.high_bytes - 1_000_000
