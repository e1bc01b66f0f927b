"""The order in which the processes of a container stop."""

from __future__ import annotations

from heron.executor.container_stop import HURRY_S, ContainerStop

GROUPS = (frozenset({"word-1", "count-2"}), frozenset({"stmgr"}), frozenset({"metricsmgr"}))
ALL = frozenset().union(*GROUPS)


def test_each_group_is_asked_when_the_group_before_has_ended() -> None:
    """The last data of instances needs the stream manager; the last metrics of all need the metrics manager."""
    stop = ContainerStop(GROUPS, 3.0, 0.0)
    assert stop.step(ALL, 0.0).ask == GROUPS[0]
    assert stop.step(ALL - {"word-1"}, 0.1).ask == frozenset()
    assert stop.step(frozenset({"stmgr", "metricsmgr"}), 0.2).ask == GROUPS[1]
    assert stop.step(frozenset({"metricsmgr"}), 0.3).ask == GROUPS[2]
    assert stop.step(frozenset(), 0.4).done


def test_a_group_that_does_not_stop_in_time_is_killed_and_the_next_group_follows() -> None:
    """User code that hangs must not keep a container alive."""
    stop = ContainerStop(GROUPS, 3.0, 0.0)
    stop.step(ALL, 0.0)
    step = stop.step(ALL, 3.0)
    assert step.kill == GROUPS[0]
    assert step.ask == GROUPS[1]
    assert stop.step(ALL, 3.1).kill == frozenset()


def test_all_processes_end_in_time_when_the_executor_itself_must_end() -> None:
    """An executor has 5 s in total after SIGTERM."""
    stop = ContainerStop(GROUPS, 60.0, 0.0)
    stop.step(ALL, 0.0)
    stop.hurry(10.0)
    killed: frozenset[str] = frozenset()
    for after_s in HURRY_S:
        killed |= stop.step(ALL - killed, 10.0 + after_s).kill
    assert killed == ALL
    assert HURRY_S[-1] <= 4.0


def test_the_next_step_is_at_the_next_deadline() -> None:
    """The executor sets its timer to it."""
    stop = ContainerStop(GROUPS, 3.0, 0.0)
    assert stop.next_at_s(0.0) == 3.0
    assert stop.next_at_s(3.0) == 3.5
    assert stop.next_at_s(99.0) is None


def test_a_container_without_live_processes_is_done_at_once() -> None:
    """A container whose processes were all given up must end, too."""
    assert ContainerStop(GROUPS, 3.0, 0.0).step(frozenset(), 0.0).done
