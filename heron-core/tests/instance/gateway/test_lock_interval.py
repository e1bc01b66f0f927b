"""The interval of the interpreter lock, by the delays of timers."""

from __future__ import annotations

import pytest

from heron.instance.gateway.lock_interval import LockInterval


def settled(wait_s: float, applied: list[float]) -> LockInterval:
    """An interval after 50 timers, each late by the interval and by the wait for a processor."""
    interval = LockInterval(applied.append)
    for _ in range(50):
        interval.adapt(interval.interval_s + wait_s)
    return interval


@pytest.mark.parametrize(("wait_s", "interval_s"), [(0.0, 0.001), (0.0005, 0.001), (0.017, 0.017), (3.0, 0.1)])
def test_the_interval_approaches_the_wait_for_a_processor(wait_s: float, interval_s: float) -> None:
    """Between one and a hundred milliseconds."""
    applied = list[float]()
    assert settled(wait_s, applied).interval_s == pytest.approx(interval_s, rel=0.01)
    assert applied[-1] == pytest.approx(interval_s, rel=0.01)


def test_it_falls_soon_when_the_machine_is_idle_again() -> None:
    """After 21 timers, of which there are ten a second; it is applied only when it changes."""
    applied = list[float]()
    interval = settled(3.0, applied)
    count = len(applied)
    for _ in range(21):
        interval.adapt(interval.interval_s)
    assert interval.interval_s == 0.001
    assert len(applied) == count + 21
    interval.adapt(0.0)
    assert len(applied) == count + 21


def test_one_timer_that_is_called_in_time_does_not_make_it_short() -> None:
    """A timer may find the lock free although the process waits most of the time."""
    interval = settled(0.02, [])
    interval.adapt(0.0)
    assert interval.interval_s == pytest.approx(0.016, rel=0.01)


def test_the_linger_is_longer_where_the_process_waits_for_a_processor() -> None:
    """Where it does not, the configured linger holds."""
    assert LockInterval(lambda _: None).linger_s(0.01) == 0.01
    assert settled(0.03, []).linger_s(0.01) == pytest.approx(0.06, rel=0.01)
