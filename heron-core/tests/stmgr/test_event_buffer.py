"""The events of a stream manager until the next export."""

from __future__ import annotations

from heron.stmgr.back_pressure import PressureChanged
from heron.stmgr.event_buffer import EventBuffer
from heron.stmgr.peer_reach import ReachChanged


def test_each_event_is_taken_once_and_has_its_own_number() -> None:
    """A receiver knows an event that arrives twice by its id."""
    events, violations = EventBuffer(2), ["session of task 3 ended"]
    events.pressure_changed(PressureChanged(3, True), "the task is slow")
    events.reach_changed(ReachChanged(1, False, 9.0))
    taken = events.take(violations)
    assert [each.name for each in taken] == ["backpressure-started", "peer-not-reached", "user-error"]
    assert [each.id for each in taken] == ["stmgr-2-1", "stmgr-2-2", "stmgr-2-3"]
    assert events.take(violations) == ()
    events.reach_changed(ReachChanged(1, True, 12.0))
    assert [each.id for each in events.take(violations)] == ["stmgr-2-4"]
