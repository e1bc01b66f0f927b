"""Which peers are silent, since when, and when they are heard again."""

from __future__ import annotations

from heron.stmgr.peer_reach import PeerReach, ReachChanged

QUIET_S = 3.0


def look(reach: PeerReach, *moments_s: float) -> tuple[ReachChanged, ...]:
    """The changes at any of these moments."""
    return tuple(change for now_s in moments_s for change in reach.update(now_s))


def test_silence_and_return_of_a_peer_are_each_reported_once() -> None:
    """The duration is known meanwhile. A heartbeat that is only late is not reported."""
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


def test_a_process_that_was_stopped_does_not_report_its_peers_as_silent() -> None:
    """A peer that was silent before stays silent."""
    reach = PeerReach(QUIET_S)
    reach.update(0.0)
    reach.expect((2, 3), 0.0)
    look(reach, 1.0, 2.0, 3.0)
    reach.heard(2, 3.0)
    assert look(reach, 4.0) == (ReachChanged(3, False, 4.0),)
    assert look(reach, 34.0) == ()
    assert reach.silent_s(34.0) == {3: 34.0}
    assert look(reach, 35.0, 36.0, 37.0, 38.0) == (ReachChanged(2, False, 4.0),)


def test_a_new_peer_has_the_full_time_and_a_moved_one_keeps_its_silence() -> None:
    """Each plan lists all peers again, which is no sign of life."""
    reach = PeerReach(QUIET_S)
    reach.update(0.0)
    reach.expect((2,), 0.0)
    assert look(reach, 1.0) == ()
    reach.expect((2, 3), 2.0)
    assert look(reach, 2.0, 3.0, 4.0) == (ReachChanged(2, False, 4.0),)
    reach.expect((2, 3), 4.5)
    assert reach.silent_s(4.5) == {2: 4.5}


def test_a_peer_that_left_the_plan_is_not_missed() -> None:
    """A late frame of it is ignored, too."""
    reach = PeerReach(QUIET_S)
    reach.update(0.0)
    reach.expect((2,), 0.0)
    assert len(look(reach, 1.0, 2.0, 3.0, 4.0)) == 1
    reach.expect((), 6.0)
    reach.heard(2, 7.0)
    assert reach.silent_s(8.0) == {}
    assert reach.update(20.0) == ()
