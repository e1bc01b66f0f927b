"""What the topology manager knows: tasks, figures, errors, registrations, and the order of the farewell."""

from __future__ import annotations

import pytest

from heron.planner.packing_plan import PackingPlan
from heron.planner.physical_plan import StreamManagerLocation
from heron.tmanager.membership import Registration, Registry
from heron.tmanager.status_parts import ErrorList
from heron.tmanager.task_table import TaskEvent, TaskReport, TaskState, TaskTable
from heron.tmanager.topology_end import StopSequence
from heron.tmanager.topology_state import ENDED, TABLE, LifeEvent, LifePhase


def test_an_end_is_for_ever(packing: PackingPlan) -> None:
    """A process that dies after its task has ended is started again, but has nothing to do."""
    table = TaskTable(packing)
    assert table.take(TaskReport(2, 1, TaskEvent.ENDED))
    assert not table.take(TaskReport(2, 2, TaskEvent.INITIALISED))
    assert not table.take(TaskReport(2, 2, TaskEvent.DIED, "x"))
    assert table.state(2) is TaskState.ENDED


def test_news_of_a_former_incarnation_is_no_news(packing: PackingPlan) -> None:
    """Reports of stream managers and executors cross each other."""
    table = TaskTable(packing)
    table.take(TaskReport(2, 2, TaskEvent.INITIALISED))
    assert not table.take(TaskReport(2, 1, TaskEvent.DIED, "killed", 0))
    assert table.state(2) is TaskState.RUNNING
    assert table.take(TaskReport(2, 1, TaskEvent.ENDED))


def test_a_task_comes_back(packing: PackingPlan) -> None:
    """The states that people see after a kill, with the reason and the count kept."""
    table = TaskTable(packing)
    seen = []
    for news in (
        TaskReport(2, 1, TaskEvent.STARTED, restarts=0),
        TaskReport(2, 1, TaskEvent.INITIALISED),
        TaskReport(2, 1, TaskEvent.STARTED, restarts=0),  # told again to a new leader
        TaskReport(2, 1, TaskEvent.DIED, "killed", 1),
        TaskReport(2, 2, TaskEvent.STARTED, restarts=1),
        TaskReport(2, 2, TaskEvent.INITIALISED),
    ):
        table.take(news)
        seen.append(table.statuses()[1].state)
    assert seen == ["starting", "running", "running", "restarting", "starting", "running"]
    assert (table.statuses()[1].restarts, table.statuses()[1].last_error) == (1, "killed")


def test_unknown_tasks_are_ignored(packing: PackingPlan) -> None:
    """A report of a task that an update has removed."""
    table = TaskTable(packing)
    assert not table.take(TaskReport(99, 1, TaskEvent.ENDED))
    assert table.place(99) == ("", 0)


def test_each_error_is_kept_once_and_the_newest_fifty() -> None:
    """A failing task must not push everything else out."""
    errors = ErrorList()
    assert errors.add("first")
    assert not errors.add("first")
    assert not errors.add("")
    for number in range(50):
        errors.add(f"error {number}")
    assert len(errors.texts()) == 50
    assert "first" not in errors.texts()


def test_registrations_are_told_apart() -> None:
    """Only a change is a reason for a new plan."""
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


def test_a_silence_that_ends_can_begin_again() -> None:
    """Each silence is told once, and so is its end."""
    registry = Registry(silence_s=10.0)
    registry.register(StreamManagerLocation(1, 5, "a", "h", 1), 0.0)
    assert registry.newly_silent(10.0) == (1,)
    assert registry.newly_silent(11.0) == ()
    assert registry.heard(1, 12.0)
    assert not registry.heard(1, 13.0)
    assert registry.newly_silent(23.0) == (1,)
    assert not registry.heard(9, 0.0)


@pytest.mark.parametrize("own", [0, 1, 2])
def test_the_leaders_own_container_is_told_last(own: int) -> None:
    """Its executor ends the topology manager: before, everybody else must know."""
    first, second = sorted({0, 1, 2} - {own})
    sequence = StopSequence((0, 1, 2), own, 0.0)
    assert sequence.due((0, 1, 2), 0.0) == {first, second}
    sequence.confirmed(first)
    assert sequence.due((0, 1, 2), 0.1) == frozenset()
    sequence.confirmed(second)
    assert sequence.due((0, 1, 2), 0.2) == {own}
    assert sequence.due((0, 1, 2), 0.3) == frozenset()


def test_nobody_is_waited_for_too_long_and_who_comes_later_is_told() -> None:
    """A container that is just being started again."""
    sequence = StopSequence((0, 1, 2), 0, 0.0)
    assert sequence.due((0, 1), 0.0) == {1}
    assert sequence.due((0, 1), 2.0) == {0}
    sequence.connected(2)
    sequence.connected(1)
    assert sequence.due((0, 1, 2), 2.1) == {1, 2}


@pytest.mark.parametrize("phase", LifePhase)
def test_nothing_leaves_an_end(phase: LifePhase) -> None:
    """Finished, failed and killed are final; every other phase can fail and be killed."""
    events = {event for state, event in TABLE if state is phase}
    assert events == set() if phase in ENDED else {LifeEvent.FAILED, LifeEvent.KILLED} <= events
