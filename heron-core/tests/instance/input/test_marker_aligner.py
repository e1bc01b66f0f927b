"""A bolt has received the END markers of all its upstream tasks."""

from __future__ import annotations

from heron.instance.input.batch_reader import MarkerAligner
from heron.planner.physical_plan import PlanUpdate, UpdatePhase


def test_complete_when_every_upstream_task_has_ended() -> None:
    """Repeated markers and markers of other tasks do not count."""
    aligner = MarkerAligner(frozenset({1, 2, 3}))
    for task_id in (1, 1, 9, 2, 2):
        aligner.end(task_id)
        assert not aligner.complete()
    aligner.end(3)
    assert aligner.complete()


def test_a_new_plan_may_add_and_remove_upstream_tasks() -> None:
    """A task that has ended stays ended, because task ids are never reused."""
    aligner = MarkerAligner(frozenset({1, 2}))
    aligner.end(1)
    aligner.set_upstream(frozenset({1}))
    assert aligner.complete()
    aligner.set_upstream(frozenset({1, 4}))
    assert not aligner.complete()
    aligner.end(4)
    assert aligner.complete()


def test_a_removed_task_has_all_of_its_input_when_every_upstream_task_has_switched_or_ended() -> None:
    """Before that, rows for it may still be on their way."""
    aligner = MarkerAligner(frozenset({1, 2, 3, 4, 5}))
    update = PlanUpdate(7, UpdatePhase.SWITCH, "target", added=(4,), removed=(9,), absent=(5,))
    assert not aligner.switched(update)
    aligner.switch(1, 7)
    aligner.switch(1, 6)  # repeated late
    aligner.end(2)
    aligner.switch(3, 6)
    assert not aligner.switched(update)
    aligner.switch(3, 8)
    assert not aligner.switched(update), "a new task sends a marker too"
    aligner.switch(4, 7)
    assert aligner.switched(update)
