"""Which peers are not heard any more, since when, and when they are again."""

from __future__ import annotations

from heron.stmgr.peer_reach import PeerReach, ReachChanged

QUIET_S = 3.0


def test_a_silent_peer_is_told_of_once_and_its_return_with_how_long_it_was_silent() -> None:
    """For as long as it lasts there is a figure; a heartbeat that is merely late is no news."""
    reach = PeerReach(QUIET_S)
    reach.expect((2, 3), 10.0)
    reach.heard(2, 12.0)
    reach.heard(3, 14.0)
    assert reach.update(15.0) == ()
    assert reach.update(16.0) == (ReachChanged(2, False, 4.0),)
    reach.heard(3, 17.0)
    assert reach.update(18.0) == ()
    assert reach.silent_s(18.0) == {2: 6.0}
    reach.heard(2, 20.0)
    assert reach.update(20.0) == (ReachChanged(2, True, 8.0),)
    assert reach.silent_s(20.0) == {}


def test_a_new_peer_has_its_time_and_one_that_moves_is_as_silent_as_before() -> None:
    """Each plan names all peers again; none of them says that anybody was heard."""
    reach = PeerReach(QUIET_S)
    reach.expect((2,), 0.0)
    reach.expect((2, 3), 2.0)
    assert reach.update(4.0) == (ReachChanged(2, False, 4.0),)
    reach.expect((2, 3), 4.5)
    assert reach.silent_s(4.5) == {2: 4.5}


def test_who_has_left_the_plan_is_missed_by_nobody() -> None:
    """Neither is a frame of it a sign of life that is kept."""
    reach = PeerReach(QUIET_S)
    reach.expect((2,), 0.0)
    reach.update(5.0)
    reach.expect((), 6.0)
    reach.heard(2, 7.0)
    assert reach.silent_s(8.0) == {}
    assert reach.update(20.0) == ()
