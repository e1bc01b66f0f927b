"""When a dead process is started again, and when it is left down."""

from __future__ import annotations

import signal

import pytest

from heron.driver_kit.parent_process import EXIT_TEMPORARY, EXIT_USER_INIT
from heron.errors import IllegalTransitionError
from heron.executor.supervisor import Phase, RestartPolicy, StartAfter, Supervisor, ending
from heron.kernel.role_spec import incarnation

POLICY = RestartPolicy(backoff_s=0.1, backoff_max_s=1.0, limit=3, stable_s=30.0)


def supervisor(policy: RestartPolicy = POLICY) -> Supervisor:
    return Supervisor(["a", "b"], policy)


def deaths(found: Supervisor, times: int, code: int = 1) -> list[StartAfter | None]:
    answers = []
    for _ in range(times):
        found.started("a", 0.0)
        answers.append(found.died("a", code, "boom", 1.0))
    return answers


def test_the_wait_doubles_up_to_its_limit() -> None:
    """A process that cannot run must not eat the machine (D10)."""
    policy = RestartPolicy(0.1, 1.0, limit=9, stable_s=30.0)
    assert [each and each.delay_s for each in deaths(supervisor(policy), 6)] == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]


def test_a_process_that_keeps_dying_is_left_down_with_its_last_error() -> None:
    """The status must say why it is down, and the others go on."""
    found = supervisor()
    assert deaths(found, 4)[-1] is None
    state = found.state("a")
    assert (state.phase, state.reason, state.restarts) == (Phase.GIVEN_UP, "boom", 3)
    assert found.may_start("b")
    assert not found.may_start("a")


@pytest.mark.parametrize("code", [EXIT_TEMPORARY, -signal.SIGKILL, -signal.SIGTERM, -signal.SIGINT, -signal.SIGHUP])
def test_what_comes_from_outside_is_no_reason_to_give_up(code: int) -> None:
    """Nobody kills himself with SIGKILL, and a disk has room again one day; what it did itself counts on."""
    found = supervisor()
    deaths(found, 3)
    assert deaths(found, 20, code)[-1] == StartAfter("a", POLICY.backoff_max_s)
    assert deaths(found, 1) == [None]


@pytest.mark.parametrize("code", [1, 7, -signal.SIGSEGV, -signal.SIGABRT])
def test_what_a_process_does_itself_counts(code: int) -> None:
    """A crash in a library is a signal too."""
    assert deaths(supervisor(), 4, code)[-1] is None


def test_a_stable_run_resets_the_budget() -> None:
    """One death a day must never add up to a process that is given up."""
    found = supervisor()
    deaths(found, 3)
    found.started("a", 100.0)
    assert found.died("a", 1, "boom", 130.0) == StartAfter("a", 0.1)


def test_user_code_that_cannot_be_initialised_is_hopeless_only_where_failure_stops_the_topology() -> None:
    """`heron run` must fail at once; a long-running topology keeps trying, as its surroundings may come back."""
    assert deaths(supervisor(), 1, EXIT_USER_INIT) == [StartAfter("a", 0.1)]
    stops = RestartPolicy(0.1, 1.0, limit=3, stable_s=30.0, stop_on_failure=True)
    assert deaths(supervisor(stops), 1, EXIT_USER_INIT) == [None]
    assert deaths(supervisor(stops), 1, 1) == [StartAfter("a", 0.1)]


def test_incarnations_grow_over_restarts_and_attempts() -> None:
    """Peers tell a new life of a process from an old one by this number alone."""
    found = supervisor()
    numbers = []
    for _ in range(3):
        numbers.append(incarnation(1, found.restarts("a")))
        found.started("a", 0.0)
        assert incarnation(1, found.restarts("a")) == numbers[-1]
        found.died("a", 1, "", 0.0)
    numbers.append(incarnation(2, 0))
    assert numbers == sorted(set(numbers))


def test_nothing_starts_after_stop() -> None:
    """A timer that was set before the stop must find nothing to do."""
    found = supervisor()
    deaths(found, 1)
    found.stop()
    assert not found.may_start("a")
    assert not found.may_start("b")
    with pytest.raises(IllegalTransitionError, match="STARTED is not allowed"):
        found.started("a", 0.0)


def test_exit_codes_are_told_in_words() -> None:
    """People know SIGKILL, not -9."""
    assert ending(3) == "exit code 3"
    assert ending(-9) == "killed by SIGKILL"
    assert ending(-200) == "killed by signal 200"
