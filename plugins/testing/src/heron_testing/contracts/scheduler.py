"""The contract suite of schedulers, with its faults: killed and deaf containers, and a killed command.

The suite runs `heron_testing.fake_executor` in place of the executor, so the driver needs an option for that command.
The test of a driver::

    class TestMyScheduler(SchedulerContract):
        name = "mine"
        driver_class = MyScheduler

        @pytest.fixture
        def options(self, tmp_path: Path) -> dict[str, object]:
            return {"executor": [*FAKE_EXECUTOR]}
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import ClassVar, cast

import pytest

from heron.errors import HostsNotAvoidedError, SchedulerError
from heron.spi.driver import DriverRef
from heron.spi.scheduler import ContainerStatus, Job, JobStatus, Scheduler, SchedulerState
from heron_testing.contracts.driver import requires
from heron_testing.contracts.fault_cases.scheduler_faults import SchedulerFaultCases
from heron_testing.contracts.parts.scheduler_bench import FAKE_EXECUTOR, GONE_S, START_S, Bench, runs
from heron_testing.waiting import wait_until

__all__ = ["FAKE_EXECUTOR", "Bench", "SchedulerContract", "runs"]

_LOCALFS = "heron_statemgr_localfs.state_manager:LocalFsStateManager"
_HOSTILE_NAMES = ["", ".", "..", "../escape", "a/b", "/etc/passwd", "a\0b", ".hidden", "a" * 5000]


class SchedulerContract(SchedulerFaultCases):
    """Subclass it with `name`, `driver_class`, the fixture `options`, and `faults` if a flag of the driver needs it.

    `uses_state` is for a driver that needs the state manager of its profile; the suite opens `localfs` for it.
    """

    uses_state: ClassVar[bool] = False

    @pytest.fixture
    def bench(self, tmp_path: Path) -> Iterator[Bench]:
        """Jobs with short run directories, because the path of a socket has at most 107 bytes."""
        state = DriverRef("statemgr", "localfs", _LOCALFS, {"root": str(tmp_path / "state")})
        with tempfile.TemporaryDirectory(prefix="heron-") as run_root:
            yield Bench(tmp_path, Path(run_root), *([state] if self.uses_state else []))

    @pytest.fixture
    def scheduler(self, options: dict[str, object], bench: Bench) -> Iterator[Scheduler]:
        """The scheduler under test; the fixture kills its jobs at the end."""
        with bench.state() as statemgr:
            scheduler = self._open(options)
            if statemgr is not None:
                scheduler.use_state(statemgr)
            yield scheduler
            for topology in bench.jobs:
                scheduler.kill(topology)

    @pytest.fixture
    def other(self, options: dict[str, object], bench: Bench, scheduler: Scheduler) -> Iterator[Scheduler]:
        """A second scheduler with the same options, as another command opens it."""
        assert scheduler is not None
        with bench.state() as statemgr:
            other = self._open(options)
            if statemgr is not None:
                other.use_state(statemgr)
            yield other

    # -- starting

    def test_every_container_starts_once_with_private_files(self, scheduler: Scheduler, bench: Bench) -> None:
        """The run directory holds sockets without keys, and the spec holds secrets, so only the user may read them."""
        scheduler.schedule(bench.job("t", "serve", "serve", "serve"))
        executors = [bench.wait_until_known(scheduler, "t", number) for number in range(3)]
        assert len({each.pid for each in executors}) == 3
        assert [each.attempt for each in executors] == [1, 1, 1]
        assert {each.spec_mode for each in executors} == {0o600}
        assert {each.run_dir_mode for each in executors} == {0o700}
        status = scheduler.status("t")
        assert status.state is SchedulerState.RUNNING
        assert status.containers == tuple(ContainerStatus(number, True, 1) for number in range(3))
        assert status.topology_id == "t-1"

    def test_a_job_that_runs_is_left_alone(self, scheduler: Scheduler, other: Scheduler, bench: Bench) -> None:
        """A second submit of the name changes nothing, and neither does a kill that names another run.

        Two state managers can each have a topology of one name. The end of one must not end the other.
        """
        scheduler.schedule(bench.job("t", "serve"))
        pid = bench.wait("t", 0).pid
        for each in (scheduler, other):
            with pytest.raises(SchedulerError, match="'t'"):
                each.schedule(bench.job("t", "serve"))
        other.kill("t", "t-2")
        assert runs(pid)
        assert bench.wait("t", 0).pid == pid
        assert other.status("t").of("t-2") == JobStatus(SchedulerState.ABSENT)
        assert other.status("t").of("t-1").state is SchedulerState.RUNNING
        other.kill("t", "t-1")
        assert scheduler.status("t") == JobStatus(SchedulerState.ABSENT)

    def test_a_job_that_cannot_start_leaves_nothing(self, scheduler: Scheduler, bench: Bench) -> None:
        """A refused job leaves no process and no folder, and its name is free for the next attempt."""
        bench.log_dir("t").parent.mkdir(parents=True, exist_ok=True)
        bench.log_dir("t").write_text("a file where a directory belongs")
        with pytest.raises(SchedulerError):
            scheduler.schedule(bench.job("t", "serve"))
        assert scheduler.status("t") == JobStatus(SchedulerState.ABSENT)
        assert not bench.run_dir("t").exists()
        bench.log_dir("t").unlink()
        scheduler.schedule(bench.job("t", "serve"))
        bench.wait("t", 0)

    def test_two_jobs_run_side_by_side(self, scheduler: Scheduler, bench: Bench) -> None:
        """A kill of one topology must not affect another topology whose name begins with the same letters."""
        scheduler.schedule(bench.job("t", "serve"))
        scheduler.schedule(bench.job("t-2", "serve"))
        first, second = bench.wait("t", 0), bench.wait_until_known(scheduler, "t-2", 0)
        scheduler.kill("t")
        bench.wait_until_nothing_is_left("t", first)
        assert scheduler.status("t-2").containers == (ContainerStatus(0, True, 1),)
        assert runs(second.pid)

    def test_hosts_are_avoided_or_refused(self, scheduler: Scheduler, bench: Bench) -> None:
        """A driver that cannot avoid hosts says so, with their names. An unknown name keeps no job from running."""
        if "avoid" not in self.driver_class.capabilities:
            with pytest.raises(HostsNotAvoidedError, match="no-such-host"):
                scheduler.avoid_hosts(["no-such-host"])
            return
        with suppress(HostsNotAvoidedError):  # the section of the profile may leave no host to choose
            scheduler.avoid_hosts(["no-such-host"])
        scheduler.schedule(bench.job("t", "serve"))
        bench.wait("t", 0)

    # -- ends

    def test_a_killed_container_comes_back_alone(self, scheduler: Scheduler, bench: Bench) -> None:
        """The killed executor gets a new attempt with a reason, and the other containers keep theirs.

        The children of the killed executor end: otherwise the old and the new attempt would run the same tasks.
        """
        scheduler.schedule(bench.job("t", "serve", "parent"))
        first, second = (bench.wait_until_known(scheduler, "t", number) for number in range(2))
        assert runs(second.child)
        os.kill(second.pid, signal.SIGKILL)
        again = bench.wait_until_known(scheduler, "t", 1, attempt=2)
        assert again.pid != second.pid
        assert bench.wait("t", 0).pid == first.pid
        containers = scheduler.status("t").containers
        assert containers[0] == ContainerStatus(0, True, 1)
        assert (containers[1].running, containers[1].attempts) == (True, 2)
        assert containers[1].last_error
        wait_until(lambda: not runs(second.child), GONE_S, "the child of the killed executor is gone")

    def test_a_container_that_crashes_is_started_again_with_its_reason(
        self, scheduler: Scheduler, bench: Bench
    ) -> None:
        """A crashing container is started again as long as the job runs; the reason is that of the executor."""
        scheduler.schedule(bench.job("t", "crash"))

        def tried_thrice() -> ContainerStatus | None:
            (container,) = scheduler.status("t").containers
            return container if container.attempts >= 3 and container.last_error else None

        container = wait_until(tried_thrice, START_S, "a third attempt")
        assert container is not None
        assert "asked to crash" in container.last_error

    def test_exit_code_0_ends_a_container_for_good(self, scheduler: Scheduler, bench: Bench) -> None:
        """A finished topology is not started again, and its last container ends the job."""
        scheduler.schedule(bench.job("t", "serve", "serve"))
        first, second = (bench.wait_until_known(scheduler, "t", number) for number in range(2))
        os.kill(second.pid, signal.SIGUSR1)
        wait_until(lambda: not scheduler.status("t").containers[1].running, GONE_S, "container 1 ended")
        containers = (ContainerStatus(0, True, 1), ContainerStatus(1, False, 1))
        assert scheduler.status("t") == JobStatus(SchedulerState.RUNNING, containers, "t-1")
        os.kill(first.pid, signal.SIGUSR1)
        bench.wait_until_nothing_is_left("t", first, second)
        ended = {SchedulerState.ENDED, SchedulerState.ABSENT}
        wait_until(lambda: scheduler.status("t").state in ended, GONE_S, "the job ended")
        wait_until(lambda: _can_schedule(scheduler, bench.job("t", "serve")), GONE_S, "the name is free")

    def test_kill_leaves_nothing(self, scheduler: Scheduler, other: Scheduler, bench: Bench) -> None:
        """A kill by another command ends executors, executors that ignore SIGTERM, and children before it returns.

        A second kill changes nothing. A new job of the name starts with attempt 1.
        """
        scheduler.schedule(bench.job("t", "serve", "deaf", "parent"))
        executors = [bench.wait("t", number) for number in range(3)]
        other.kill("t")
        assert [runs(pid) for each in executors for pid in (each.pid, each.child)] == [False] * 6
        assert not bench.run_dir("t").exists()
        assert other.status("t") == JobStatus(SchedulerState.ABSENT)
        other.kill("t")
        bench.forget("t")
        scheduler.schedule(bench.job("t", "serve"))
        bench.wait("t", 0)
        scheduler.kill("t")

    # -- changes

    def test_restart_is_of_one_container(self, scheduler: Scheduler, other: Scheduler, bench: Bench) -> None:
        """The container has a new attempt when the call returns, and the other containers keep theirs."""
        requires(scheduler, "restart")
        scheduler.schedule(bench.job("t", "serve", "serve"))
        first, second = bench.wait("t", 0), bench.wait("t", 1)
        with pytest.raises(SchedulerError, match="9"):
            scheduler.restart("t", 9)
        other.restart("t", 1)
        assert not runs(second.pid)
        assert bench.wait("t", 1, attempt=2).pid != second.pid
        assert bench.wait("t", 0).pid == first.pid
        assert scheduler.status("t").containers[1].attempts == 2

    def test_update_adds_and_removes(self, scheduler: Scheduler, other: Scheduler, bench: Bench) -> None:
        """An update does not affect the remaining containers, also when two commands update at the same moment.

        A failed update changes nothing: half an update would run a plan that no command wrote.
        """
        requires(scheduler, "update")
        scheduler.schedule(bench.job("t", "serve", "serve"))
        first, second = (bench.wait_until_known(scheduler, "t", number) for number in range(2))
        before, new = scheduler.status("t"), bench.spec("t", 2)
        for add, remove in (([new, bench.spec("t", 0)], [1]), ([new], [9]), ([new, new], [])):
            with pytest.raises(SchedulerError):
                scheduler.update("t", add, remove)
            assert scheduler.status("t") == before
        assert [bench.wait("t", number).pid for number in range(2)] == [first.pid, second.pid]
        other.update("t", [bench.spec("t", 2), bench.spec("t", 3, "deaf")], [1])
        assert not runs(second.pid)
        third = bench.wait("t", 3)
        bench.wait("t", 2)
        assert [each.container_id for each in scheduler.status("t").containers] == [0, 2, 3]
        assert bench.wait("t", 0).pid == first.pid
        with ThreadPoolExecutor(2) as threads:  # one of them may fail, and 3 is removed once
            updated = list(threads.map(lambda each: _updates(each, remove=3), (scheduler, other)))
        assert True in updated
        assert not runs(third.pid)
        status = scheduler.status("t")
        assert (status.state, [each.container_id for each in status.containers]) == (SchedulerState.RUNNING, [0, 2])
        assert bench.wait("t", 0).pid == first.pid

    def test_two_updates_at_once_add_both(self, scheduler: Scheduler, other: Scheduler, bench: Bench) -> None:
        """Each changes the job as a whole; the second must not undo what the first has added."""
        requires(scheduler, "shared")
        scheduler.schedule(bench.job("t", "serve"))
        first = bench.wait_until_known(scheduler, "t", 0)
        with ThreadPoolExecutor(2) as threads:
            calls = [
                threads.submit(each.update, "t", [bench.spec("t", number)], [])
                for number, each in ((1, scheduler), (2, other))
            ]
        for call in calls:
            call.result()
        containers = tuple(ContainerStatus(number, True, 1) for number in range(3))
        status = scheduler.status("t")
        seen = tuple(ContainerStatus(each.container_id, each.running, each.attempts) for each in status.containers)
        assert (status.state, seen) == (SchedulerState.RUNNING, containers)
        assert bench.wait("t", 0).pid == first.pid

    def test_a_job_that_does_not_run_cannot_be_changed(self, scheduler: Scheduler, bench: Bench) -> None:
        """A restart or an update of an unknown name is an error that names it; `kill` accepts it."""
        assert scheduler.status("t") == JobStatus(SchedulerState.ABSENT)
        assert scheduler.links("t") == ()
        scheduler.kill("t")
        attempts: list[Callable[[], None]] = [
            lambda: scheduler.restart("t", 0),
            lambda: scheduler.update("t", [bench.spec("t", 0)], []),
        ]
        for attempt in attempts:
            with pytest.raises(SchedulerError, match="t"):
                attempt()

    @pytest.mark.parametrize("topology", _HOSTILE_NAMES)
    def test_a_hostile_name_is_refused(self, scheduler: Scheduler, bench: Bench, topology: str) -> None:
        """A name that leads out of the folder of the driver could end or overwrite something that is not a job."""
        attempts: list[Callable[[], object]] = [
            lambda: scheduler.schedule(Job(topology, "t-1", (bench.spec("t", 0),))),
            lambda: scheduler.kill(topology),
            lambda: scheduler.restart(topology, 0),
            lambda: scheduler.status(topology),
            lambda: scheduler.links(topology),
        ]
        for attempt in attempts:
            with pytest.raises(SchedulerError):
                attempt()

    # -- the command's own end

    def test_an_attached_job_ends_with_its_command_also_on_kill_9(
        self, scheduler: Scheduler, bench: Bench, command: Callable[..., subprocess.Popen[str]]
    ) -> None:
        """After SIGKILL of `heron run`, all processes of the job end within seconds."""
        requires(scheduler, "attached")
        process = command(bench.job("t", "serve", "parent", attached=True))
        executors = [bench.wait("t", number) for number in range(2)]
        process.kill()
        bench.wait_until_nothing_is_left("t", *executors)
        wait_until(lambda: scheduler.status("t").state is SchedulerState.ABSENT, GONE_S, "the job is gone")

    def test_a_detached_job_survives_its_command(
        self, scheduler: Scheduler, bench: Bench, command: Callable[..., subprocess.Popen[str]]
    ) -> None:
        """`heron submit` returns and the terminal closes; the scheduler still restarts containers."""
        process = command(bench.job("t", "serve"))
        first = bench.wait("t", 0)
        process.kill()
        process.wait()
        os.kill(first.pid, signal.SIGKILL)
        bench.wait("t", 0, attempt=2)
        assert scheduler.status("t").state is SchedulerState.RUNNING

    def _open(self, options: dict[str, object]) -> Scheduler:
        return cast("Scheduler", self.driver_class.open(options))


def _updates(scheduler: Scheduler, remove: int) -> bool:
    try:
        scheduler.update("t", [], [remove])
    except SchedulerError:
        return False
    return True


def _can_schedule(scheduler: Scheduler, job: Job) -> bool:
    try:
        scheduler.schedule(job)
    except SchedulerError:
        return False
    return True
