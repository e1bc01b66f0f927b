"""Which peers are not heard any more, since when, and when they are again."""

from __future__ import annotations

from heron.stmgr.peer_reach import PeerReach, ReachChanged

QUIET_S = 3.0


def look(reach: PeerReach, *moments_s: float) -> tuple[ReachChanged, ...]:
    """What has changed at any of these."""
    return tuple(change for now_s in moments_s for change in reach.update(now_s))


def test_a_silent_peer_is_told_of_once_and_its_return_with_how_long_it_was_silent() -> None:
    """For as long as it lasts there is a figure; a heartbeat that is merely late is no news."""
    reach = PeerReach(QUIET_S)
    reach.update(10.0)
    reach.expect((2, 3), 10.0)
    assert look(reach, 11.0, 12.0) == ()
    reach.heard(2, 12.0)
    assert look(reach, 13.0, 14.0) == (ReachChanged(3, False, 4.0),)
    reach.heard(3, 14.0)
    assert look(reach, 15.0) == (ReachChanged(3, True, 4.0),)
    assert look(reach, 16.0, 17.0) == (ReachChanged(2, False, 4.0),)
    reach.heard(3, 17.0)
    assert look(reach, 18.0) == ()
    assert reach.silent_s(18.0) == {2: 6.0}
    reach.heard(2, 19.0)
    assert look(reach, 19.0) == (ReachChanged(2, True, 7.0),)
    assert reach.silent_s(19.0) == {}


def test_who_was_stopped_itself_does_not_take_its_sleep_for_the_silence_of_others() -> None:
    """A peer whose silence was known before is silent still."""
    reach = PeerReach(QUIET_S)
    reach.update(0.0)
    reach.expect((2, 3), 0.0)
    look(reach, 1.0, 2.0, 3.0)
    reach.heard(2, 3.0)
    assert look(reach, 4.0) == (ReachChanged(3, False, 4.0),)
    assert look(reach, 34.0) == ()
    assert reach.silent_s(34.0) == {3: 34.0}
    assert look(reach, 35.0, 36.0, 37.0, 38.0) == (ReachChanged(2, False, 4.0),)


def test_a_new_peer_has_its_time_and_one_that_moves_is_as_silent_as_before() -> None:
    """Each plan names all peers again; none of them says that anybody was heard."""
    reach = PeerReach(QUIET_S)
    reach.update(0.0)
    reach.expect((2,), 0.0)
    assert look(reach, 1.0) == ()
    reach.expect((2, 3), 2.0)
    assert look(reach, 2.0, 3.0, 4.0) == (ReachChanged(2, False, 4.0),)
    reach.expect((2, 3), 4.5)
    assert reach.silent_s(4.5) == {2: 4.5}


def test_who_has_left_the_plan_is_missed_by_nobody() -> None:
    """Neither is a frame of it a sign of life that is kept."""
    reach = PeerReach(QUIET_S)
    reach.update(0.0)
    reach.expect((2,), 0.0)
    assert len(look(reach, 1.0, 2.0, 3.0, 4.0)) == 1
    reach.expect((), 6.0)
    reach.heard(2, 7.0)
    assert reach.silent_s(8.0) == {}
    assert reach.update(20.0) == ()
