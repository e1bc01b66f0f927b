"""Tables of the topology manager: tasks, errors, registrations, the order of the stops, the life of a topology."""

from __future__ import annotations

import pytest

from heron.planner.packing_plan import PackingPlan
from heron.planner.physical_plan import StreamManagerLocation
from heron.tmanager.leader.membership import Registration, Registry
from heron.tmanager.leader.status_parts import ErrorList
from heron.tmanager.leader.task_table import TaskEvent, TaskReport, TaskState, TaskTable
from heron.tmanager.leader.topology_state import ENDED, TABLE, LifeEvent, LifePhase
from heron.tmanager.state.topology_end import StopSequence


def test_an_ended_task_stays_ended(packing: PackingPlan) -> None:
    """A process that dies after the end of its task is restarted, but the task has nothing to do."""
    table = TaskTable(packing)
    assert table.take(TaskReport(2, 1, TaskEvent.ENDED))
    assert not table.take(TaskReport(2, 2, TaskEvent.INITIALISED))
    assert not table.take(TaskReport(2, 2, TaskEvent.DIED, "x"))
    assert table.state(2) is TaskState.ENDED


def test_reports_about_a_former_incarnation_are_ignored(packing: PackingPlan) -> None:
    """Reports of stream managers and executors can cross each other."""
    table = TaskTable(packing)
    table.take(TaskReport(2, 2, TaskEvent.INITIALISED))
    assert not table.take(TaskReport(2, 1, TaskEvent.DIED, "killed", 0))
    assert table.state(2) is TaskState.RUNNING
    assert table.take(TaskReport(2, 1, TaskEvent.ENDED))


def test_the_states_of_a_restarted_task(packing: PackingPlan) -> None:
    """The status keeps the reason of the death and counts the restart."""
    table = TaskTable(packing)
    seen = []
    for report in (
        TaskReport(2, 1, TaskEvent.STARTED, restarts=0),
        TaskReport(2, 1, TaskEvent.INITIALISED),
        TaskReport(2, 1, TaskEvent.STARTED, restarts=0),  # repeated for a new leader
        TaskReport(2, 1, TaskEvent.DIED, "killed", 1),
        TaskReport(2, 2, TaskEvent.STARTED, restarts=1),
        TaskReport(2, 2, TaskEvent.INITIALISED),
    ):
        table.take(report)
        seen.append(table.statuses()[1].state)
    assert seen == ["starting", "running", "running", "restarting", "starting", "running"]
    assert (table.statuses()[1].restarts, table.statuses()[1].last_error) == (1, "killed")


def test_unknown_tasks_are_ignored(packing: PackingPlan) -> None:
    """An update may have removed the task of a report."""
    table = TaskTable(packing)
    assert not table.take(TaskReport(99, 1, TaskEvent.ENDED))
    assert table.place(99) == ("", 0)


def test_each_error_is_kept_once_and_the_newest_fifty() -> None:
    """A task that fails again and again must not replace all other errors."""
    errors = ErrorList()
    assert errors.add("first")
    assert not errors.add("first")
    assert not errors.add("")
    for number in range(50):
        errors.add(f"error {number}")
    assert len(errors.texts()) == 50
    assert "first" not in errors.texts()


def test_a_registration_is_new_the_same_changed_or_stale() -> None:
    """Only a change needs a new plan."""
    registry = Registry(silence_s=10.0)
    first = StreamManagerLocation(1, 5, "a", "h", 1)
    second = StreamManagerLocation(1, 6, "b", "h", 2)
    wanted = [
        (first, Registration.NEW),
        (first, Registration.SAME),
        (second, Registration.CHANGED),
        (first, Registration.STALE),
    ]
    assert [registry.register(each, 0.0) for each, _ in wanted] == [kind for _, kind in wanted]
    assert registry.locations() == {1: second}


def test_each_silence_and_its_end_are_reported_once() -> None:
    """A second silence of the same stream manager is reported again."""
    registry = Registry(silence_s=10.0)
    registry.register(StreamManagerLocation(1, 5, "a", "h", 1), 0.0)
    assert registry.newly_silent(10.0) == (1,)
    assert registry.newly_silent(11.0) == ()
    assert registry.heard(1, 12.0)
    assert not registry.heard(1, 13.0)
    assert registry.newly_silent(23.0) == (1,)
    assert not registry.heard(9, 0.0)


@pytest.mark.parametrize("own", [0, 1, 2])
def test_the_container_of_the_leader_stops_last(own: int) -> None:
    """Its executor ends the topology manager, so all other executors need the order before."""
    first, second = sorted({0, 1, 2} - {own})
    sequence = StopSequence((0, 1, 2), own, 0.0)
    assert sequence.due((0, 1, 2), 0.0) == {first, second}
    sequence.confirmed(first)
    assert sequence.due((0, 1, 2), 0.1) == frozenset()
    sequence.confirmed(second)
    assert sequence.due((0, 1, 2), 0.2) == {own}
    assert sequence.due((0, 1, 2), 0.3) == frozenset()


def test_executors_have_a_time_limit_and_late_ones_are_stopped_too() -> None:
    """A container may be restarting."""
    sequence = StopSequence((0, 1, 2), 0, 0.0)
    assert sequence.due((0, 1), 0.0) == {1}
    assert sequence.due((0, 1), 2.0) == {0}
    sequence.connected(2)
    sequence.connected(1)
    assert sequence.due((0, 1, 2), 2.1) == {1, 2}


@pytest.mark.parametrize("phase", LifePhase)
def test_final_phases_have_no_events(phase: LifePhase) -> None:
    """Finished, failed and killed are final. In every other phase a topology can fail or be killed."""
    events = {event for state, event in TABLE if state is phase}
    assert events == set() if phase in ENDED else {LifeEvent.FAILED, LifeEvent.KILLED} <= events
