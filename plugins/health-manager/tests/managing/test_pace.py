"""The pace of observations follows what rounds cost, and a window never compares what cannot be compared."""

from __future__ import annotations

import pytest

from heron_health_manager.managing.pace import Pace


def test_a_small_topology_is_observed_as_often_as_it_may() -> None:
    """40 ms in 2.5 s are below the share."""
    pace = Pace(2.5)
    for _ in range(10):
        pace.took(0.04)
    assert pace.period_s == 2.5


def test_rounds_of_seconds_are_far_apart() -> None:
    """With a policy in every second round, they take 1 and 2 s. That is never more than 4 % of the time."""
    pace, used_s, passed_s = Pace(2.5), 0.0, 0.0
    for number in range(200):
        cpu_s = 1.0 + number % 2
        pace.took(cpu_s)
        used_s, passed_s = used_s + cpu_s, passed_s + pace.period_s
        assert used_s <= 0.04 * passed_s
    assert used_s >= 0.03 * passed_s


def test_the_pace_returns_when_the_topology_becomes_small() -> None:
    """After an update to fewer tasks."""
    pace = Pace(2.5)
    pace.took(3.0)
    assert pace.period_s == pytest.approx(75.0)
    for _ in range(30):
        pace.took(0.01)
    assert pace.period_s == 2.5
