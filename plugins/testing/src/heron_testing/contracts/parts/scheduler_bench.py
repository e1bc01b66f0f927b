"""Jobs of fake executors for the scheduler suite, and the observation of their processes."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from heron.driver_kit.large_values import open_statemgr
from heron.spi.driver import DriverRef
from heron.spi.scheduler import ContainerSpec, Job, Scheduler
from heron.spi.statemgr import StateManager
from heron_testing.fake_executor import Alive, alive
from heron_testing.waiting import wait_until

__all__ = ["FAKE_EXECUTOR", "GONE_S", "START_S", "Bench", "runs"]

FAKE_EXECUTOR = (sys.executable, "-P", "-m", "heron_testing.fake_executor")
"""The command that a driver under test runs in place of the executor; the path of a spec file follows."""

START_S = 60.0
"""Seconds within which a container starts."""

GONE_S = 20.0
"""Seconds within which an ended process or folder disappears."""

_UNUSED = DriverRef("none", "none", "none:None")


class Bench:
    """Makes jobs whose fake executors write notes into one folder, and reads the notes."""

    def __init__(self, folder: Path, run_root: Path, statemgr: DriverRef = _UNUSED) -> None:
        """Keep logs and notes below `folder` and run directories below `run_root`.

        `statemgr` is for a driver that uses the state of topologies; fake executors do not use it.
        """
        self._folder = folder
        self._run_root = run_root
        self._statemgr = statemgr
        self.jobs: list[str] = []

    @contextmanager
    def state(self) -> Iterator[StateManager | None]:
        """Open the state manager for `Scheduler.use_state`; None for a bench without one."""
        if self._statemgr == _UNUSED:
            yield None
            return
        statemgr = open_statemgr(self._statemgr)
        try:
            yield statemgr
        finally:
            statemgr.close()

    def spec(self, topology: str, container_id: int, task: str = "serve") -> ContainerSpec:
        """Return the spec of one container; `task` is a task of `heron_testing.fake_executor`."""
        return ContainerSpec(
            topology=topology,
            topology_id=f"{topology}-1",
            container_id=container_id,
            attempt=1,
            run_dir=str(self.run_dir(topology)),
            log_dir=str(self.log_dir(topology)),
            package_uri="",
            statemgr=self._statemgr,
            uploader=_UNUSED,
            settings={"fake": task, "notes": str(self.log_dir(topology))},
        )

    def job(self, topology: str, *tasks: str, attached: bool = False) -> Job:
        """Return a job with one container for each task; container ids start at 0."""
        self.jobs.append(topology)
        specs = tuple(self.spec(topology, number, task) for number, task in enumerate(tasks))
        return Job(topology, f"{topology}-1", specs, attached)

    def run_dir(self, topology: str) -> Path:
        """Return the folder for the sockets of a job; the scheduler makes and removes it."""
        return self._run_root / topology

    def log_dir(self, topology: str) -> Path:
        """Return the folder of the notes of a job; the scheduler keeps it."""
        return self._folder / "logs" / topology

    def wait(self, topology: str, container_id: int, attempt: int = 1) -> Alive:
        """Wait until attempt number `attempt` of the container runs, and return its executor.

        Raises:
            AssertionError: after `START_S` seconds.
        """

        def up() -> Alive | None:
            found = alive(self.log_dir(topology), container_id)
            return found if found is not None and found.attempt == attempt else None

        found = wait_until(up, START_S, f"attempt {attempt} of container {container_id} of {topology}")
        assert found is not None
        return found

    def wait_until_known(self, scheduler: Scheduler, topology: str, container_id: int, attempt: int = 1) -> Alive:
        """Do as `wait`, and wait until `scheduler` reports that the attempt runs.

        An executor may run before the scheduler has heard of it. A test that compares `status` waits here first.

        Raises:
            AssertionError: after `START_S` seconds for each.
        """

        def known() -> bool:
            return any(
                each.running and (each.container_id, each.attempts) == (container_id, attempt)
                for each in scheduler.status(topology).containers
            )

        found = self.wait(topology, container_id, attempt)
        wait_until(known, START_S, f"container {container_id} of {topology} is known to run")
        return found

    def wait_until_nothing_is_left(self, topology: str, *executors: Alive) -> None:
        """Wait until the executors, their children and the run directory of the job are gone.

        Raises:
            AssertionError: after `GONE_S` seconds for each.
        """
        for executor in executors:
            for pid in (executor.pid, executor.child):
                wait_until(functools.partial(_ended, pid), GONE_S, f"process {pid} is gone")
        wait_until(lambda: not self.run_dir(topology).exists(), GONE_S, "the run directory is gone")

    def forget(self, topology: str) -> None:
        """Remove the notes of a job that has ended; a killed executor leaves its note behind."""
        for note in self.log_dir(topology).glob("*.alive"):
            note.unlink()


def runs(pid: int) -> bool:
    """Return whether the process exists and is not a zombie; false for 0."""
    if not pid:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        return b") Z" not in Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return not Path("/proc/self/stat").exists()


def _ended(pid: int) -> bool:
    return not runs(pid)
