"""How long a spout was held back."""

from __future__ import annotations

from heron.instance.flow_limits import SpoutThrottle
from heron_testing.fake_clock import FakeClock


def test_the_time_of_two_culprits_at_once_counts_once() -> None:
    """The metric is the spout's own: how long it stood still."""
    clock = FakeClock()
    held = SpoutThrottle(clock)
    assert held.total_s() == 0.0
    held.change(4, on=True)
    clock.advance(1.0)
    held.change(5, on=True)
    held.change(4, on=False)
    clock.advance(2.0)
    assert held.culprits == {5}
    assert held.total_s() == 3.0
    held.change(5, on=False)
    clock.advance(10.0)
    assert held.total_s() == 3.0


def test_a_session_begins_with_what_its_welcome_says() -> None:
    """A stream manager that is gone cannot lift anything; its successor says what holds."""
    clock = FakeClock()
    held = SpoutThrottle(clock)
    held.begin([4])
    clock.advance(1.0)
    held.begin()
    clock.advance(1.0)
    assert (held.culprits, held.total_s()) == (frozenset(), 1.0)
    held.begin([4, 6])
    assert held.culprits == {4, 6}
