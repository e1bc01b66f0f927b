"""A bolt has received the END markers of all its upstream tasks."""

from __future__ import annotations

from heron.instance.input.marker_counter import MarkerCounter
from heron.planner.physical_plan import PlanUpdate, UpdatePhase


def test_complete_when_every_upstream_task_has_ended() -> None:
    """Repeated markers and markers of other tasks do not count."""
    markers = MarkerCounter(frozenset({1, 2, 3}))
    for task_id in (1, 1, 9, 2, 2):
        markers.end(task_id)
        assert not markers.complete()
    markers.end(3)
    assert markers.complete()


def test_a_new_plan_may_add_and_remove_upstream_tasks() -> None:
    """A task that has ended stays ended, because task ids are never reused."""
    markers = MarkerCounter(frozenset({1, 2}))
    markers.end(1)
    markers.set_upstream(frozenset({1}))
    assert markers.complete()
    markers.set_upstream(frozenset({1, 4}))
    assert not markers.complete()
    markers.end(4)
    assert markers.complete()


def test_a_removed_task_has_all_of_its_input_when_every_upstream_task_has_switched_or_ended() -> None:
    """Before that, rows for it may still be on their way."""
    markers = MarkerCounter(frozenset({1, 2, 3, 4, 5}))
    update = PlanUpdate(7, UpdatePhase.SWITCH, "target", added=(4,), removed=(9,), absent=(5,))
    assert not markers.switched(update)
    markers.switch(1, 7)
    markers.switch(1, 6)  # repeated late
    markers.end(2)
    markers.switch(3, 6)
    assert not markers.switched(update)
    markers.switch(3, 8)
    assert not markers.switched(update), "a new task sends a marker too"
    markers.switch(4, 7)
    assert markers.switched(update)
