"""How long a spout was throttled."""

from __future__ import annotations

from heron.instance.queues.flow_limits import SpoutThrottle
from heron_testing.fake_clock import FakeClock


def test_the_time_of_two_culprits_at_once_counts_once() -> None:
    """The metric is the time for which the spout was not called."""
    clock = FakeClock()
    throttle = SpoutThrottle(clock)
    assert throttle.total_s() == 0.0
    throttle.change(4, on=True)
    clock.advance(1.0)
    throttle.change(5, on=True)
    throttle.change(4, on=False)
    clock.advance(2.0)
    assert throttle.culprits == {5}
    assert throttle.total_s() == 3.0
    throttle.change(5, on=False)
    clock.advance(10.0)
    assert throttle.total_s() == 3.0


def test_a_session_begins_with_the_culprits_of_its_welcome() -> None:
    """A lost stream manager cannot release the spout; its successor lists the present culprits."""
    clock = FakeClock()
    throttle = SpoutThrottle(clock)
    throttle.begin([4])
    clock.advance(1.0)
    throttle.begin()
    clock.advance(1.0)
    assert (throttle.culprits, throttle.total_s()) == (frozenset(), 1.0)
    throttle.begin([4, 6])
    assert throttle.culprits == {4, 6}
