"""Who is dead, by one clock only: that of the process that looks."""

from __future__ import annotations

import pytest

from heron_statemgr_hdfs.lives import Lives, Sign
from heron_testing.fake_clock import FakeClock

NODE = "/heron/state/tmanagers/t"
LEASE_S = 4.0


@pytest.fixture
def lives(fake_clock: FakeClock) -> Lives:
    return Lives(LEASE_S, fake_clock)


def looks(lives: Lives, clock: FakeClock, mark: int, seconds: float, every_s: float = 0.5, holder: str = "a") -> Sign:
    """Looks at the same mark for a time; the last verdict."""
    sign = lives.look(NODE, holder, mark)
    for _ in range(round(seconds / every_s)):
        clock.advance(every_s)
        sign = lives.look(NODE, holder, mark)
    return sign


def test_a_mark_that_is_unchanged_for_a_lease_is_of_a_dead_holder(lives: Lives, fake_clock: FakeClock) -> None:
    """This is how a takeover begins."""
    assert looks(lives, fake_clock, 1, LEASE_S / 2 - 0.5) is Sign.ALIVE
    assert looks(lives, fake_clock, 1, 0.5) is Sign.SILENT
    assert looks(lives, fake_clock, 1, LEASE_S / 2 - 0.5) is Sign.SILENT
    assert looks(lives, fake_clock, 1, 0.5) is Sign.DEAD


def test_a_change_is_life(lives: Lives, fake_clock: FakeClock) -> None:
    """However late: the lease begins anew."""
    assert looks(lives, fake_clock, 1, LEASE_S - 0.5) is Sign.SILENT
    assert looks(lives, fake_clock, 2, 0.0) is Sign.ALIVE
    assert looks(lives, fake_clock, 2, LEASE_S - 0.5) is Sign.SILENT
    assert looks(lives, fake_clock, 2, 0.5) is Sign.DEAD


def test_another_holder_has_a_lease_of_its_own(lives: Lives, fake_clock: FakeClock) -> None:
    """What the last one missed is not the next one's."""
    assert looks(lives, fake_clock, 1, LEASE_S) is Sign.DEAD
    assert lives.look(NODE, "b", 1) is Sign.ALIVE
    assert looks(lives, fake_clock, 1, LEASE_S - 0.5, holder="b") is Sign.SILENT


def test_time_in_which_nobody_looked_does_not_count(lives: Lives, fake_clock: FakeClock) -> None:
    """HDFS was away, and so could not be told of a life; or this process was stopped for an hour."""
    assert lives.look(NODE, "a", 1) is Sign.ALIVE
    fake_clock.advance(3600.0)
    assert lives.look(NODE, "a", 1) is Sign.ALIVE
    assert looks(lives, fake_clock, 1, 2.5) is Sign.SILENT
    assert looks(lives, fake_clock, 1, 0.5) is Sign.DEAD


def test_who_could_not_renew_has_its_whole_lease_again(lives: Lives, fake_clock: FakeClock) -> None:
    """A name node in safe mode is read and not written."""
    assert looks(lives, fake_clock, 1, LEASE_S - 0.5) is Sign.SILENT
    lives.forget(NODE)
    assert looks(lives, fake_clock, 1, LEASE_S - 0.5) is Sign.SILENT


def test_marks_may_go_back(lives: Lives, fake_clock: FakeClock) -> None:
    """Marks are compared, never ordered: they are times of a clock that may be set."""
    assert looks(lives, fake_clock, 2, LEASE_S - 0.5) is Sign.SILENT
    assert looks(lives, fake_clock, 1, LEASE_S - 0.5) is Sign.SILENT
