"""Counting refused connections from events that do not name the connection."""

from __future__ import annotations

from heron.ipc.guarded_hub import Handshakes

LONGEST_S = 10.0
NONE = {"unknown-key": 0, "protocol": 0, "unfinished": 0, "foreign": 0}


def test_accepted_peers_are_not_counted() -> None:
    """Neither during the handshake, nor in the session, nor after it."""
    counts = Handshakes(LONGEST_S)
    counts.accepted(7, 0.0)
    assert counts.refused(0.0) == NONE
    counts.succeeded()
    assert counts.refused(1.0) == counts.refused(100.0) == NONE
    counts.disconnected(7)
    assert counts.refused(101.0) == NONE


def test_a_failed_handshake_is_counted_once_by_reason() -> None:
    """The failure event comes before the event that the connection is closed."""
    counts = Handshakes(LONGEST_S)
    for descriptor, reason in enumerate(("unknown-key", "protocol", "unfinished")):
        counts.accepted(descriptor, 0.0)
        counts.failed(reason)
        counts.disconnected(descriptor)
    assert counts.refused(50.0) == {"unknown-key": 1, "protocol": 1, "unfinished": 1, "foreign": 0}


def test_the_difference_are_peers_that_do_not_speak_the_protocol() -> None:
    """For such a connection ZeroMQ reports only that it was accepted and closed."""
    counts = Handshakes(LONGEST_S)
    counts.accepted(3, 0.0)
    counts.disconnected(3)
    assert counts.refused(0.0) == NONE | {"foreign": 1}


def test_a_count_never_falls_while_other_handshakes_run() -> None:
    """A counter that falls looks like a restart."""
    counts = Handshakes(LONGEST_S)
    counts.accepted(3, 0.0)
    counts.disconnected(3)
    for descriptor in range(4, 9):
        counts.accepted(descriptor, 5.0)
        counts.succeeded()
        assert counts.refused(5.0)["foreign"] <= 1
    assert counts.refused(50.0) == NONE | {"foreign": 1}
