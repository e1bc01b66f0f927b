"""Dead holders are found with one clock: the clock of the observing process."""

from __future__ import annotations

import pytest

from heron_statemgr_hdfs.lease_monitor import HolderState, LeaseMonitor
from heron_testing.fake_clock import FakeClock

NODE = "/heron/state/tmanagers/t"
LEASE_S = 4.0


@pytest.fixture
def monitor(fake_clock: FakeClock) -> LeaseMonitor:
    return LeaseMonitor(LEASE_S, fake_clock)


def observe(
    monitor: LeaseMonitor, clock: FakeClock, mark: int, seconds: float, every_s: float = 0.5, holder: str = "a"
) -> HolderState:
    """Observe the same mark for some time; return the last state."""
    sign = monitor.observe(NODE, holder, mark)
    for _ in range(round(seconds / every_s)):
        clock.advance(every_s)
        sign = monitor.observe(NODE, holder, mark)
    return sign


def test_a_holder_is_dead_if_its_mark_is_unchanged_for_a_lease(monitor: LeaseMonitor, fake_clock: FakeClock) -> None:
    """Another process can then hold the node."""
    assert observe(monitor, fake_clock, 1, LEASE_S / 2 - 0.5) is HolderState.ALIVE
    assert observe(monitor, fake_clock, 1, 0.5) is HolderState.SILENT
    assert observe(monitor, fake_clock, 1, LEASE_S / 2 - 0.5) is HolderState.SILENT
    assert observe(monitor, fake_clock, 1, 0.5) is HolderState.DEAD


def test_a_changed_mark_restarts_the_lease(monitor: LeaseMonitor, fake_clock: FakeClock) -> None:
    """This also holds shortly before the end of the lease."""
    assert observe(monitor, fake_clock, 1, LEASE_S - 0.5) is HolderState.SILENT
    assert observe(monitor, fake_clock, 2, 0.0) is HolderState.ALIVE
    assert observe(monitor, fake_clock, 2, LEASE_S - 0.5) is HolderState.SILENT
    assert observe(monitor, fake_clock, 2, 0.5) is HolderState.DEAD


def test_a_new_holder_has_a_new_lease(monitor: LeaseMonitor, fake_clock: FakeClock) -> None:
    """Missed renewals of the former holder do not count."""
    assert observe(monitor, fake_clock, 1, LEASE_S) is HolderState.DEAD
    assert monitor.observe(NODE, "b", 1) is HolderState.ALIVE
    assert observe(monitor, fake_clock, 1, LEASE_S - 0.5, holder="b") is HolderState.SILENT


def test_time_without_an_observation_does_not_count(monitor: LeaseMonitor, fake_clock: FakeClock) -> None:
    """HDFS was away, so no holder could renew its lease; or this process was stopped for an hour."""
    assert monitor.observe(NODE, "a", 1) is HolderState.ALIVE
    fake_clock.advance(3600.0)
    assert monitor.observe(NODE, "a", 1) is HolderState.ALIVE
    assert observe(monitor, fake_clock, 1, 2.5) is HolderState.SILENT
    assert observe(monitor, fake_clock, 1, 0.5) is HolderState.DEAD


def test_a_holder_that_could_not_renew_gets_a_whole_lease(monitor: LeaseMonitor, fake_clock: FakeClock) -> None:
    """A name node in safe mode can be read but not written."""
    assert observe(monitor, fake_clock, 1, LEASE_S - 0.5) is HolderState.SILENT
    monitor.restart(NODE)
    assert observe(monitor, fake_clock, 1, LEASE_S - 0.5) is HolderState.SILENT


def test_a_mark_may_decrease(monitor: LeaseMonitor, fake_clock: FakeClock) -> None:
    """Marks are only compared for equality, because they are times of a clock that may be set."""
    assert observe(monitor, fake_clock, 2, LEASE_S - 0.5) is HolderState.SILENT
    assert observe(monitor, fake_clock, 1, LEASE_S - 0.5) is HolderState.SILENT
