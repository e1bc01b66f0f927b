"""The faults of the scheduler suite: killed commands, racing commands, and an unreachable server."""

from __future__ import annotations

import functools
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import msgspec
import pytest

from heron.errors import SchedulerError
from heron.spi.scheduler import Job, JobStatus, Scheduler, SchedulerState
from heron_testing.contracts.driver import DriverContract, in_time, needed, requires
from heron_testing.contracts.parts.scheduler_bench import GONE_S, START_S, Bench
from heron_testing.contracts.parts.second_process import second_process
from heron_testing.fake_executor import alive
from heron_testing.faults import Faults
from heron_testing.waiting import wait_until

__all__ = ["SchedulerFaultCases"]

_SCHEDULE_S = 30.0
_RACERS = 4


class SchedulerFaultCases(DriverContract):
    """Part of `heron_testing.contracts.scheduler.SchedulerContract`."""

    family = "scheduler"

    @pytest.fixture
    def command(self, options: dict[str, object]) -> Iterator[Callable[..., subprocess.Popen[str]]]:
        """Return a function that schedules a job in another process, which then waits to be killed.

        The function returns before the call of `schedule` (``until="scheduling"``) or after it (``"scheduled"``).
        """
        started: list[subprocess.Popen[str]] = []

        def start(job: Job, until: str = "scheduled") -> subprocess.Popen[str]:
            words = second_process(self.family, self.driver_class, options, msgspec.json.encode(job).decode())
            process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
            started.append(process)
            assert process.stdout is not None
            assert process.stdout.readline() == "scheduling\n"
            if until == "scheduled":
                assert process.stdout.readline() == "scheduled\n"
            return process

        yield start
        for process in started:
            process.kill()
            process.communicate()

    @pytest.mark.parametrize("instant", ["at once", "run directory", "first container"])
    @pytest.mark.parametrize("attached", [False, True])
    def test_a_command_killed_while_it_schedules_leaves_what_kill_removes(
        self,
        scheduler: Scheduler,
        bench: Bench,
        command: Callable[..., subprocess.Popen[str]],
        instant: str,
        attached: bool,
    ) -> None:
        """After SIGKILL the job exists completely or not at all, or `kill` removes its rest. Then the name is free."""
        if attached:  # otherwise it would be the same case again
            requires(scheduler, "attached")
        process = command(bench.job("t", "serve", "serve", "serve", attached=attached), until="scheduling")
        reached: dict[str, Callable[[], bool]] = {
            "at once": lambda: True,
            "run directory": lambda: bench.run_dir("t").exists() or process.poll() is not None,
            # A failed command must start no container.
            "first container": lambda: alive(bench.log_dir("t"), 0) is not None or process.poll() not in {None, 0},
        }
        wait_until(reached[instant], START_S, instant)
        process.kill()
        process.wait()
        executors = [found for number in range(3) if (found := alive(bench.log_dir("t"), number)) is not None]
        scheduler.kill("t")
        assert scheduler.status("t") == JobStatus(SchedulerState.ABSENT)
        bench.wait_until_nothing_is_left("t", *executors)
        bench.forget("t")
        wait_until(functools.partial(_schedules, scheduler, bench.job("t", "serve")), GONE_S, "the name is free")
        bench.wait("t", 0)

    def test_of_commands_that_race_one_schedules(
        self, options: dict[str, object], scheduler: Scheduler, bench: Bench
    ) -> None:
        """If people submit one name at the same moment, one job runs, and the other commands report an error."""
        job = bench.job("t", "serve", "serve")

        def race(_: int) -> str:
            other = self.driver_class.open(options)
            assert isinstance(other, Scheduler)
            with bench.state() as statemgr:
                if statemgr is not None:
                    other.use_state(statemgr)
                return "scheduled" if _schedules(other, job) else "refused"

        with ThreadPoolExecutor(_RACERS) as threads:
            outcomes = list(threads.map(race, range(_RACERS)))
        assert sorted(outcomes) == ["refused"] * (_RACERS - 1) + ["scheduled"]
        for number in range(2):
            bench.wait("t", number)
        status = scheduler.status("t")
        assert status.state is SchedulerState.RUNNING
        assert [each.container_id for each in status.containers] == [0, 1]

    @pytest.mark.parametrize("fault", ["away", "silent"])
    def test_a_server_that_does_not_answer_is_an_error_in_time(
        self, scheduler: Scheduler, bench: Bench, faults: Faults, fault: str
    ) -> None:
        """No part of the job may run after the command has reported a failure."""
        with needed(scheduler, faults, fault)(), in_time(_SCHEDULE_S), pytest.raises(SchedulerError):
            scheduler.schedule(bench.job("t", "serve"))
        wait_until(lambda: _is_absent(scheduler, "t"), GONE_S, "the server answers, and has no such job")
        scheduler.schedule(bench.job("t", "serve"))
        bench.wait("t", 0)

    def test_a_job_whose_answer_is_lost_is_there_once_or_not(
        self, scheduler: Scheduler, bench: Bench, faults: Faults
    ) -> None:
        """The outcome is unknown to the command. `status` reports it, and `kill` ends the job in either case."""
        with needed(scheduler, faults, "answers_lost")(), _maybe():
            scheduler.schedule(bench.job("t", "serve"))
        wait_until(lambda: _can_be_killed(scheduler, "t"), GONE_S, "the server answers")
        assert scheduler.status("t") == JobStatus(SchedulerState.ABSENT)
        bench.forget("t")
        scheduler.schedule(bench.job("t", "serve"))
        bench.wait("t", 0)


@contextmanager
def _maybe() -> Iterator[None]:
    try:
        yield
    except SchedulerError:
        return


def _schedules(scheduler: Scheduler, job: Job) -> bool:
    try:
        scheduler.schedule(job)
    except SchedulerError:
        return False
    return True


def _is_absent(scheduler: Scheduler, topology: str) -> bool:
    try:
        return scheduler.status(topology).state is SchedulerState.ABSENT
    except SchedulerError:
        return False


def _can_be_killed(scheduler: Scheduler, topology: str) -> bool:
    try:
        scheduler.kill(topology)
    except SchedulerError:
        return False
    return True
