"""When a process that died is restarted, and when it is given up."""

from __future__ import annotations

import signal

import pytest

from heron.driver_kit.parent_process import EXIT_TEMPORARY, EXIT_USER_INIT
from heron.errors import IllegalTransitionError
from heron.executor.process_restarts import (
    ProcessPhase,
    ProcessRestarts,
    RestartPolicy,
    StartAfter,
    describe_exit,
)
from heron.kernel.role_spec import incarnation

POLICY = RestartPolicy(backoff_s=0.1, backoff_max_s=1.0, limit=3, stable_s=30.0)


def restarts(policy: RestartPolicy = POLICY) -> ProcessRestarts:
    return ProcessRestarts(["a", "b"], policy)


def deaths(found: ProcessRestarts, times: int, code: int = 1) -> list[StartAfter | None]:
    answers = []
    for _ in range(times):
        found.started("a", 0.0)
        answers.append(found.died("a", code, "boom", 1.0))
    return answers


def test_the_wait_doubles_up_to_its_limit() -> None:
    """A process that cannot run must not use up the processor."""
    policy = RestartPolicy(0.1, 1.0, limit=9, stable_s=30.0)
    assert [each and each.delay_s for each in deaths(restarts(policy), 6)] == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]


def test_a_process_that_keeps_dying_is_given_up_with_its_last_error() -> None:
    """The status must show why it is down. Other processes are not affected."""
    found = restarts()
    assert deaths(found, 4)[-1] is None
    state = found.state("a")
    assert (state.phase, state.reason, state.restarts) == (ProcessPhase.GIVEN_UP, "boom", 3)
    assert found.may_start("b")
    assert not found.may_start("a")


def test_a_process_that_died_has_a_restart_from_its_death_on() -> None:
    """ "died" beside "restarts 0" would contradict. Only a process that is given up at its first death has none."""
    found = restarts()
    found.started("a", 0.0)
    assert (found.state("a").reason, found.state("a").restarts) == ("", 0)
    found.died("a", 1, "boom", 1.0)
    assert (found.state("a").phase, found.state("a").reason, found.state("a").restarts) == (
        ProcessPhase.WAITING,
        "boom",
        1,
    )
    assert found.started("a", 2.0).restarts == 1


def test_a_service_is_never_given_up() -> None:
    """A topology works without it, and `on failure: stop` must not end the topology because of it."""
    found = ProcessRestarts(["a", "b"], POLICY, never_given_up=frozenset({"a"}))
    assert deaths(found, 20)[-1] == StartAfter("a", POLICY.backoff_max_s)


@pytest.mark.parametrize("code", [EXIT_TEMPORARY, -signal.SIGKILL, -signal.SIGTERM, -signal.SIGINT, -signal.SIGHUP])
def test_causes_from_outside_do_not_count(code: int) -> None:
    """No process sends SIGKILL to itself, and a full disk may be emptied. The process's own failures still count."""
    found = restarts()
    deaths(found, 3)
    assert deaths(found, 20, code)[-1] == StartAfter("a", POLICY.backoff_max_s)
    assert deaths(found, 1) == [None]


@pytest.mark.parametrize("code", [1, 7, -signal.SIGSEGV, -signal.SIGABRT])
def test_the_process_s_own_failures_count(code: int) -> None:
    """A crash in a library ends a process with a signal, too."""
    assert deaths(restarts(), 4, code)[-1] is None


def test_a_stable_run_resets_the_budget() -> None:
    """A process that dies once a day must never be given up."""
    found = restarts()
    deaths(found, 3)
    found.started("a", 100.0)
    assert found.died("a", 1, "boom", 130.0) == StartAfter("a", 0.1)


def test_user_code_that_cannot_be_initialised_is_hopeless_only_where_failure_stops_the_topology() -> None:
    """`heron run` must fail at once; a long-running topology retries, because the cause may be temporary."""
    assert deaths(restarts(), 1, EXIT_USER_INIT) == [StartAfter("a", 0.1)]
    stops = RestartPolicy(0.1, 1.0, limit=3, stable_s=30.0, stop_on_failure=True)
    assert deaths(restarts(stops), 1, EXIT_USER_INIT) == [None]
    assert deaths(restarts(stops), 1, 1) == [StartAfter("a", 0.1)]


def test_incarnations_grow_over_restarts_and_attempts() -> None:
    """Peers distinguish a restarted process from its predecessor only by this number."""
    found = restarts()
    numbers = []
    for _ in range(3):
        numbers.append(incarnation(1, found.restarts("a")))
        found.started("a", 0.0)
        assert incarnation(1, found.restarts("a")) == numbers[-1]
        found.died("a", 1, "", 0.0)
    numbers.append(incarnation(2, 0))
    assert numbers == sorted(set(numbers))


def test_nothing_starts_after_stop() -> None:
    """A timer that was set before the stop must have no effect."""
    found = restarts()
    deaths(found, 1)
    found.stop()
    assert not found.may_start("a")
    assert not found.may_start("b")
    with pytest.raises(IllegalTransitionError, match="STARTED is not allowed"):
        found.started("a", 0.0)


def test_exit_codes_are_shown_as_texts() -> None:
    """An operator knows SIGKILL, not -9."""
    assert describe_exit(3) == "exit code 3"
    assert describe_exit(-9) == "killed by SIGKILL"
    assert describe_exit(-200) == "killed by signal 200"


def test_processes_may_be_added_and_removed() -> None:
    """The timer of a removed process still fires, and then must not start it."""
    found = restarts()
    found.add("c")
    assert found.may_start("c")
    assert deaths(found, 1)[0] is not None
    found.remove("a")
    assert not found.may_start("a")
    assert [each.process for each in found.states()] == ["b", "c"]
