"""Events are what differs between two statuses, and nothing else."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import pytest
from msgspec.structs import replace as replaced

from heron.ipc.documents.status import CheckpointStatus, Culprit, UpdateStatus
from heron_cli.client import TopologyStatus
from heron_service_tracker.observed.observed import EVENTS_KEPT
from heron_service_tracker.watches.observations import Observations
from heron_service_tracker.watches.status_events import StatusEvent, events_between

MakeStatus = Callable[..., TopologyStatus]


def test_an_equal_status_gives_no_event(make_status: MakeStatus) -> None:
    """A quiet topology must not fill the list."""
    assert events_between(make_status(), make_status()) == ()


def test_a_process_that_was_restarted_is_named_with_the_reason(make_status: MakeStatus) -> None:
    """The reason is what a person looks for; the state alone may be back before the next question."""
    before = make_status()
    lines, count = before.processes
    now = replace(before, processes=(lines, replaced(count, restarts=1, pid=99, last_error="signal 9")))
    assert events_between(before, now) == (StatusEvent("process-restarted", "count-2-1", "signal 9"),)


def test_states_tasks_and_leaders_that_change_are_events(make_status: MakeStatus) -> None:
    """Each is a mark on a timeline."""
    before = make_status()
    lines, count = before.tasks
    assert before.leader is not None
    now = replace(
        before,
        state="paused",
        leader=replaced(before.leader, epoch=2),
        tasks=(lines, replaced(count, task_id=3)),
        errors=("it failed",),
    )
    kinds = [(each.kind, each.subject) for each in events_between(before, now)]
    assert kinds == [
        ("state-changed", ""),
        ("leader-changed", ""),
        ("task-added", "count-3"),
        ("task-removed", "count-2"),
        ("error", ""),
    ]


def test_back_pressure_begins_and_ends(make_status: MakeStatus) -> None:
    """A culprit is named when it appears and when it is gone."""
    calm, busy = make_status(), make_status(backpressure=(Culprit(2, "count", 1, 5.0, "slow"),))
    assert events_between(calm, busy) == (StatusEvent("back-pressure-began", "count-2", "slow"),)
    assert events_between(busy, calm) == (StatusEvent("back-pressure-ended", "count-2", ""),)


def test_another_run_begins_with_one_event(make_status: MakeStatus) -> None:
    """The tasks of two runs are not compared."""
    now = replace(make_status(), topology_id="words-2", tasks=())
    assert [each.kind for each in events_between(make_status(), now)] == ["topology-seen"]


@pytest.mark.matrix
def test_a_hundred_thousand_events_are_bounded_and_counted(observations: Observations, make_status: MakeStatus) -> None:
    """The newest stay, with their numbers; a reader sees how many it has missed."""
    for number in range(200):
        errors = tuple(f"error {number} of task {task}" for task in range(500))
        observations.put_status("near", make_status(errors=errors), None)
    topology = observations.topology("near", "words")
    assert topology.events_seen == 100_001  # and the first one, that the topology was seen
    assert len(topology.events) == EVENTS_KEPT
    assert topology.events[-1].number == topology.events_seen


def test_an_update_is_followed_through_its_phases(make_status: MakeStatus) -> None:
    """A person sees from the marks of a timeline what an update did to the rates."""
    prepare = UpdateStatus(3, "prepare", "p2", added=(8, 9), removed=(2,), waits_for="task 8")
    steps = [None, prepare, replaced(prepare, phase="switch"), replaced(prepare, phase="complete", waits_for="")]
    statuses = [make_status(update=each) for each in steps]
    found = [events_between(before, now) for before, now in itertools.pairwise(statuses)]
    assert [[(each.kind, each.text) for each in events] for events in found] == [
        [("update-began", "update 3 to packing plan p2; tasks added: 2, removed: 1")],
        [("update-switch", "update 3")],
        [("update-complete", "update 3")],
    ]
    assert events_between(statuses[1], statuses[1]) == ()


def test_an_update_between_two_questions_began_and_ended(make_status: MakeStatus) -> None:
    """A short update must not be missed, and a withdrawn one says why."""
    update = UpdateStatus(4, "withdrawn", "p2", waits_for="task 8 did not start")
    before = make_status(update=replaced(update, number=3, phase="complete", waits_for=""))
    found = events_between(before, make_status(update=update))
    assert [(each.kind, each.text) for each in found] == [
        ("update-began", "update 4 to packing plan p2; tasks added: 0, removed: 0"),
        ("update-withdrawn", "update 4: task 8 did not start"),
    ]


def test_of_checkpoints_only_failures_and_restores_are_events(make_status: MakeStatus) -> None:
    """A checkpoint changes the plan twice every few seconds, and would hide what people look for."""
    steps = [
        CheckpointStatus(number=4, complete=4, failed=1, last_error="before"),
        CheckpointStatus(number=5, complete=5, failed=1, last_error="before"),
        CheckpointStatus(number=7, complete=5, failed=2, last_error="task 2 did not save", failed_number=6),
        CheckpointStatus(number=7, complete=7),  # another leader counts from 0
        CheckpointStatus(number=7, complete=7, restores=1, source="words-1/7"),
    ]
    statuses = [make_status(checkpoints=each, plan_version=number) for number, each in enumerate(steps)]
    found = [events_between(before, now) for before, now in itertools.pairwise(statuses)]
    assert [[(each.kind, each.text) for each in events] for events in found] == [
        [],
        [("checkpoint-failed", "checkpoint 6: task 2 did not save")],
        [],
        [("restored", "from words-1/7")],
    ]
