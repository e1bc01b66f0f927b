"""The decisions about one container of a managed scheduler: steps of its launcher, restarts, owners of attempts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heron.errors import SchedulerError
from heron_scheduler_kit.managed.container_life import (
    UNSEEN_END,
    ExecutorEnd,
    RestartLimits,
    Step,
    claimed,
    ended,
    next_step,
    removed,
    restarted,
)
from heron_scheduler_kit.managed.container_records import ContainerPhase, ContainerRecord
from heron_scheduler_kit.supervision import BackoffLimits

LIMITS = RestartLimits(BackoffLimits(0.1, 10.0, 30.0), 2)
NEW = ContainerRecord("t", "t-1", 1)
RUNNING = claimed(NEW, "host-a")
CRASH = ExecutorEnd("exit code 3", own=True, ran_s=1.0)
KILLED = ExecutorEnd("killed by SIGKILL", own=False, ran_s=1.0)


def test_each_attempt_has_the_next_number_and_a_reason_if_nobody_saw_the_last_end() -> None:
    """Links of the engine take a process with a lower number for an old one, also after the loss of a machine."""
    assert (RUNNING.attempts, RUNNING.phase, RUNNING.error, RUNNING.host) == (1, ContainerPhase.RUNNING, "", "host-a")
    again = claimed(RUNNING, "host-b")
    assert (again.attempts, again.error, again.host) == (2, UNSEEN_END, "host-b")


def test_failures_wait_longer_until_the_container_is_given_up() -> None:
    """The contract: 0.1 s that doubles; after the limit the container is down, with the reason."""
    record, waits = RUNNING, []
    for _ in range(3):
        record = ended(record, record.attempts, CRASH, LIMITS)
        waits.append(record.wait_s)
        if record.phase is ContainerPhase.WAITING:
            record = claimed(record, "host-a")
    assert waits == [0.1, 0.2, 0.4]
    assert record.phase is ContainerPhase.GIVEN_UP
    assert record.error == "given up after 3 failures in a row: exit code 3"
    assert next_step(record, 0) is Step.REST
    assert claimed(record, "host-a") == record
    assert next_step(restarted(record), 0) is Step.START


def test_deaths_from_outside_and_stable_runs_do_not_count() -> None:
    """Decision 016: an operator or the kernel must not use up the restart limit."""
    record = RUNNING
    for end in (CRASH, CRASH, KILLED, replace(CRASH, ran_s=31.0), CRASH):
        record = claimed(ended(record, record.attempts, end, LIMITS), "host-a")
    assert (record.faults, record.attempts) == (2, 6)


def test_exit_code_0_ends_a_container_for_good() -> None:
    """The cluster starts its launcher again, for example on another machine; the executor must not run again."""
    record = ended(RUNNING, 1, ExecutorEnd("", own=False, ran_s=1.0), LIMITS)
    assert record.phase is ContainerPhase.ENDED
    assert next_step(record, 0) is Step.REST
    with pytest.raises(SchedulerError, match="container 1 is ended"):
        restarted(record)


def test_an_older_copy_ends_and_changes_nothing() -> None:
    """After a partition the cluster may have started a second copy; only one attempt may go on."""
    second = claimed(RUNNING, "host-b")
    assert next_step(second, 1) is Step.END
    assert next_step(second, 2) is Step.STAY
    assert ended(second, 1, CRASH, LIMITS) == second


def test_a_killed_job_starts_nothing_and_ends_what_runs() -> None:
    """A launcher on a machine that the cluster cannot reach learns of the kill from the state manager alone."""
    assert next_step(None, 0) is Step.LEAVE
    assert next_step(None, 1) is Step.END


def test_a_restart_ends_one_attempt_and_forgets_the_failures() -> None:
    """`heron restart` of a container that waits after failures begins at once."""
    asked = restarted(replace(RUNNING, faults=2, wait_s=6.4))
    assert next_step(asked, 1) is Step.END
    waiting = ended(asked, 1, KILLED, LIMITS)
    assert (waiting.phase, waiting.faults, waiting.wait_s, waiting.error) == (ContainerPhase.WAITING, 0, 0.0, "")
    assert next_step(claimed(waiting, "host-a"), 2) is Step.STAY


def test_a_removed_container_ends_in_order_and_never_starts() -> None:
    """A launcher with an old launch file must not start a container that has left the plan."""
    unwanted = replace(RUNNING, wanted=False)
    assert next_step(unwanted, 1) is Step.END
    gone = ended(unwanted, 1, KILLED, LIMITS)
    assert gone.phase is ContainerPhase.REMOVED
    assert next_step(gone, 0) is Step.REST
    assert next_step(replace(NEW, wanted=False), 0) is Step.REMOVE
    assert removed(NEW) == NEW
