"""The contract suite for `Executors`; tests of a scheduler subclass it. It needs the distribution heron-testing."""

from __future__ import annotations

import abc
import os
import selectors
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import msgspec
import pytest

from heron.clock import monotonic_s
from heron.driver_kit.child_processes import ProcessIdentity
from heron.driver_kit.private_files import write_private
from heron.driver_kit.signals import Signals
from heron_scheduler_kit.executors import Executors, Exit
from heron_scheduler_kit.job_folder import JobFolder, JobRecord
from heron_testing.contracts.parts.scheduler_bench import FAKE_EXECUTOR, Bench
from heron_testing.fake_executor import Alive, alive

__all__ = ["ExecutorsContract", "SupervisedJob"]

T = TypeVar("T")

_LIMIT_S = 20.0  # ends a hang; a cluster needs seconds to start a container
_TICK_S = 0.1


class SupervisedJob:
    """One job of the suite: its executors, and the loop of a supervisor."""

    def __init__(self, executors: Executors, bench: Bench) -> None:
        self.executors = executors
        self._bench = bench
        self._exits: dict[int, list[Exit]] = {}

    def add(self, container_id: int, task: str = "serve") -> None:
        """Write the spec of a container; `task` is the behaviour of `heron_testing.fake_executor`."""
        spec = self._bench.spec(self.executors.record.topology, container_id, task)
        write_private(self.executors.folder.spec_file(container_id), msgspec.json.encode(spec))

    def start(self, container_id: int, task: str = "serve", attempt: int = 1) -> None:
        """Write the spec and start the container."""
        self.add(container_id, task)
        self.executors.start(container_id, attempt)

    def running(self, container_id: int) -> Alive:
        """Wait until the executor runs and is reported as up; return its note."""
        found = self.wait(lambda: self._up(container_id), f"container {container_id} is up")
        assert found is not None
        return found

    def exits(self, container_id: int) -> list[Exit]:
        """Return all ends of a container so far."""
        return self._exits.get(container_id, [])

    def ended(self, container_id: int) -> Exit:
        """Wait for one end of a container."""
        found = self.wait(lambda: self.exits(container_id), f"container {container_id} has ended")
        return found[-1]

    def wait(self, predicate: Callable[[], T], what: str) -> T:
        """Run the loop of the supervisor until `predicate` returns something true."""
        deadline_s = monotonic_s() + _LIMIT_S
        while not (found := predicate()):
            assert monotonic_s() < deadline_s, f"not within {_LIMIT_S} s: {what}"
            for key, _events in self.executors.selector.select(min(_TICK_S, self.executors.tick_s or _TICK_S)):
                key.data()
            for each in self.executors.reap():
                self._exits.setdefault(each.container_id, []).append(each)
        return found

    def _up(self, container_id: int) -> Alive | None:
        up = self.executors.placement(container_id).up and self.executors.identity(container_id) is not None
        return alive(self._bench.log_dir(self.executors.record.topology), container_id) if up else None


class ExecutorsContract(abc.ABC):
    """The cases that every implementation of `Executors` meets. Subclasses say how one is made."""

    @abc.abstractmethod
    def make(self, folder: JobFolder, record: JobRecord, selector: selectors.BaseSelector) -> Executors:
        """Return the executors under test."""

    def options(self) -> dict[str, object]:
        """Return the options of the driver for ``JobRecord.options``."""
        return {}

    @pytest.fixture
    def job(self, tmp_path: Path) -> Iterator[SupervisedJob]:
        """A job without containers; its executors are closed after the test."""
        folder = JobFolder(tmp_path / "jobs" / "words")
        folder.path.mkdir(parents=True, mode=0o700)
        bench = Bench(tmp_path, tmp_path / "run")
        logs = bench.log_dir("words")
        logs.mkdir(parents=True)
        record = JobRecord(
            topology="words",
            topology_id="words-1",
            attached=False,
            executor=FAKE_EXECUTOR,
            log_dir=str(logs),
            run_dirs=(str(bench.run_dir("words")),),
            backoff_s=0.1,
            backoff_max_s=1.0,
            stable_s=30.0,
            grace_s=4.0,
            options=self.options(),
        )
        folder.write_job(record)
        before = {each: signal.getsignal(each) for each in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT)}
        with selectors.DefaultSelector() as selector:
            signals = Signals((signal.SIGCHLD,))
            selector.register(signals, selectors.EVENT_READ, signals.read)
            executors = self.make(folder, record, selector)
            try:
                job = SupervisedJob(executors, bench)
                job.add(1)
                executors.begin()
                job.wait(executors.taken_over, "the job is taken over")
                yield job
            finally:
                executors.close()
        signal.set_wakeup_fd(-1)
        for each, handler in before.items():
            signal.signal(each, handler)

    def test_started_container_is_up_with_its_process(self, job: SupervisedJob) -> None:
        """Status, `kill` and the next supervisor find the executor by its identity."""
        job.start(1)
        note = job.running(1)
        identity = job.executors.identity(1)
        assert identity is not None
        assert identity.pid == note.pid
        assert note.attempt == 1

    def test_container_that_was_never_started_is_not_up(self, job: SupervisedJob) -> None:
        """The supervisor asks for all containers, also for one that waits for its first start."""
        assert not job.executors.placement(7).up
        assert job.executors.identity(7) is None
        job.executors.terminate(7)
        job.executors.kill(7)
        assert job.executors.reap() == ()

    def test_end_in_order_has_no_error(self, job: SupervisedJob) -> None:
        """Exit code 0 ends a container for good."""
        job.start(1, "done")
        assert (job.ended(1).error, job.ended(1).own) == ("", False)
        assert not job.executors.placement(1).up

    def test_failure_has_the_reason_and_is_its_own(self, job: SupervisedJob) -> None:
        """Failures of its own lead to a container that is given up; the status shows the reason."""
        job.start(1, "crash")
        ended = job.ended(1)
        assert ended.own
        assert "asked to crash" in ended.error

    def test_terminated_executor_ends_in_order(self, job: SupervisedJob) -> None:
        """A container that is stopped has time to store and remove what it holds."""
        job.start(1)
        note = job.running(1)
        identity = ProcessIdentity.of(note.pid)
        job.executors.terminate(1)
        assert not job.ended(1).own
        assert not identity.alive()

    def test_killed_executor_leaves_no_process(self, job: SupervisedJob) -> None:
        """A process that ignores SIGTERM would run beside its successor."""
        job.start(1, "parent")
        note = job.running(1)
        identities = [ProcessIdentity.of(note.pid), ProcessIdentity.of(note.child)]
        job.executors.kill(1)
        assert job.ended(1).error
        assert not job.ended(1).own
        job.wait(lambda: not any(each.alive() for each in identities), "executor and child are gone")

    def test_death_from_outside_is_reported_and_not_its_own(self, job: SupervisedJob) -> None:
        """The kernel's out-of-memory killer or an operator must not use up the restart limit."""
        job.start(1)
        os.kill(job.running(1).pid, signal.SIGKILL)
        ended = job.ended(1)
        assert ended.error
        assert not ended.own

    def test_each_end_is_reported_once(self, job: SupervisedJob) -> None:
        """A second report would start a second executor."""
        job.start(1, "done")
        job.start(2, "done")
        job.ended(1)
        job.ended(2)
        job.start(3)
        job.running(3)
        assert [len(job.exits(each)) for each in (1, 2)] == [1, 1]

    def test_container_starts_again_with_the_next_attempt(self, job: SupervisedJob) -> None:
        """The attempt tells incarnations apart; the spec of the executor has it."""
        job.start(1, "done")
        job.ended(1)
        job.start(1, attempt=2)
        assert job.running(1).attempt == 2

    def test_closing_kills_what_still_runs(self, job: SupervisedJob) -> None:
        """After the supervisor has ended nothing of the job may be left."""
        job.start(1, "deaf")
        identity = ProcessIdentity.of(job.running(1).pid)
        job.executors.close()
        assert not identity.alive()
