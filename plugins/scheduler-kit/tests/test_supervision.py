"""The decisions of a supervisor, without processes: times are numbers, instructions are values."""

from __future__ import annotations

import pytest

from heron.errors import SchedulerError
from heron_scheduler_kit.supervision import BackoffLimits, ContainerState, Kill, Start, Supervision, Terminate


@pytest.fixture
def supervision() -> Supervision:
    """Two containers, both up since 0 s."""
    made = Supervision(BackoffLimits(0.1, 10.0, 30.0), grace_s=4.0)
    for container_id in (0, 1):
        made.add(container_id, first_attempt=1, now_s=0.0)
    assert made.due(0.0) == (Start(0, 1), Start(1, 1))
    for container_id in (0, 1):
        made.started(container_id, 0.0)
    return made


def test_a_failed_container_is_due_after_its_back_off(supervision: Supervision) -> None:
    """Not earlier, and with the next attempt; `next_due_s` is the time to wake."""
    supervision.exited(1, 1.0, "exit code 3")
    assert supervision.due(1.05) == ()
    assert supervision.next_due_s() == pytest.approx(1.1)
    assert supervision.due(1.1) == (Start(1, 2),)
    supervision.started(1, 1.1)
    supervision.exited(1, 1.2, "exit code 3")
    assert supervision.next_due_s() == pytest.approx(1.4)
    assert supervision.container(1).last_error == "exit code 3"


def test_a_container_that_cannot_be_started_backs_off_too(supervision: Supervision) -> None:
    """A full disk must not make the supervisor spin."""
    supervision.exited(1, 1.0, "killed by SIGKILL")
    supervision.due(1.1)
    supervision.exited(1, 1.1, "no space")
    assert supervision.container(1).state is ContainerState.WAITING
    assert supervision.next_due_s() == pytest.approx(1.3)


def test_the_job_is_over_when_all_have_ended(supervision: Supervision) -> None:
    """A container with exit code 0 is not started again."""
    supervision.exited(0, 1.0, "")
    assert not supervision.over()
    supervision.exited(1, 2.0, "")
    assert supervision.over()
    assert supervision.due(100.0) == ()
    assert supervision.next_due_s() is None


def test_a_restart_terminates_and_starts_at_once(supervision: Supervision) -> None:
    """The end was requested: with any exit code it is not a failure, and there is no back-off."""
    assert supervision.restart(1, 5.0) == (Terminate(1),)
    supervision.exited(1, 5.5, "killed by SIGTERM")
    assert supervision.due(5.5) == (Start(1, 2),)
    assert supervision.container(1).last_error == ""


def test_a_restart_of_a_waiting_container_ends_the_wait(supervision: Supervision) -> None:
    """A person who repaired the cause should not wait for ten seconds."""
    supervision.exited(1, 1.0, "exit code 3")
    assert supervision.restart(1, 1.01) == ()
    assert supervision.due(1.01) == (Start(1, 2),)


def test_a_container_that_ignores_sigterm_is_killed_once_after_the_grace_time(supervision: Supervision) -> None:
    """A second request does not give it more time."""
    assert supervision.stop([1], 1.0) == (Terminate(1),)
    supervision.stop([1], 4.0)
    assert supervision.due(4.9) == ()
    assert supervision.due(5.0) == (Kill(1),)
    assert supervision.due(6.0) == ()
    supervision.exited(1, 6.0, "killed by SIGKILL")
    assert supervision.container(1).state is ContainerState.STOPPED


def test_a_stop_overrides_a_restart(supervision: Supervision) -> None:
    """A kill during a restart must not leave a new attempt behind."""
    supervision.restart(1, 1.0)
    supervision.stop([0, 1], 1.1)
    supervision.exited(0, 1.2, "")
    supervision.exited(1, 1.2, "")
    assert supervision.over()
    with pytest.raises(SchedulerError, match="stopped"):
        supervision.restart(1, 1.3)


def test_an_unknown_or_duplicate_container_is_refused_without_effect(supervision: Supervision) -> None:
    """The message lists the containers."""
    with pytest.raises(SchedulerError, match="'0', '1'"):
        supervision.stop([0, 7], 1.0)
    with pytest.raises(SchedulerError, match="container 0 exists already"):
        supervision.add(0, 1, 1.0)
    assert [each.state for each in supervision.containers()] == [ContainerState.RUNNING] * 2


def test_an_ended_container_cannot_be_restarted(supervision: Supervision) -> None:
    """Its tasks have finished; to run them again, submit the topology again."""
    supervision.exited(1, 1.0, "")
    with pytest.raises(SchedulerError, match="ended"):
        supervision.restart(1, 2.0)


def _fails(supervision: Supervision, at_s: float, times: int, *, own: bool = True, ran_s: float = 0.1) -> None:
    for _ in range(times):
        assert supervision.due(at_s + 20.0)[-1:] != ()
        supervision.started(1, at_s + 20.0)
        supervision.exited(1, at_s + 20.0 + ran_s, "exit code 1", own=own)
        at_s += 40.0 + ran_s


@pytest.fixture
def strict() -> Supervision:
    """Return a supervision with container 0 up and 1 to be started; a third failure in a row gives it up."""
    made = Supervision(BackoffLimits(0.1, 10.0, 30.0), grace_s=4.0, restart_limit=2)
    made.add(0, first_attempt=1, now_s=0.0)
    made.due(0.0)
    made.started(0, 0.0)
    made.add(1, first_attempt=1, now_s=0.0)
    return made


def test_a_container_that_fails_too_often_is_given_up_until_a_restart(strict: Supervision) -> None:
    """The others go on. A restart resets the count, because a person has mended the cause."""
    _fails(strict, 0.0, 2)
    assert strict.container(1).state is ContainerState.WAITING
    _fails(strict, 100.0, 1)
    assert (strict.container(1).state, strict.container(1).last_error) == (ContainerState.DOWN, "exit code 1")
    assert strict.due(1000.0) == ()
    assert strict.next_due_s() is None
    assert not strict.over()
    assert strict.restart(1, 1000.0) == ()
    assert strict.due(1000.0) == (Start(1, 4),)
    strict.started(1, 1000.0)
    strict.exited(1, 1001.0, "exit code 1", own=True)
    assert strict.container(1).state is ContainerState.WAITING


def test_the_wait_for_a_place_does_not_count_as_a_run(strict: Supervision) -> None:
    """Otherwise, on a busy cluster, a container that crashes at once would seem to have run for long."""
    for start_s in (0.0, 100.0, 200.0):
        strict.due(start_s + 20.0)
        strict.started(1, start_s + 20.0)
        strict.exited(1, start_s + 80.0, "exit code 1", own=True, ran_s=0.1)
    assert strict.container(1).state is ContainerState.DOWN


def test_failures_from_outside_and_after_long_runs_do_not_count(strict: Supervision) -> None:
    """A cluster that is away for a night must not give a container up."""
    _fails(strict, 0.0, 50, own=False)
    _fails(strict, 10_000.0, 50, ran_s=30.0)
    assert strict.container(1).state is ContainerState.WAITING


def test_a_job_is_over_when_all_other_containers_have_ended(strict: Supervision) -> None:
    """A container that is down does not keep the job; until then it can be restarted."""
    _fails(strict, 0.0, 3)
    assert not strict.over()
    strict.exited(0, 500.0, "")
    assert strict.over()
    assert strict.stop([0, 1], 501.0) == ()
    assert strict.container(1).state is ContainerState.STOPPED
