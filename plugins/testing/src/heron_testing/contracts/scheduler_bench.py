"""What the cases of the scheduler's contract run: jobs of fake executors, and what becomes of them."""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path

from heron.spi.driver import DriverRef
from heron.spi.scheduler import ContainerSpec, Job
from heron_testing.fake_executor import Alive, alive
from heron_testing.pytest_plugin import wait_until

__all__ = ["FAKE_EXECUTOR", "GONE_S", "START_S", "Bench", "runs"]

FAKE_EXECUTOR = (sys.executable, "-P", "-m", "heron_testing.fake_executor")
"""The command that a driver under test is to run with the path of a spec."""

START_S = 20.0
"""A container is up by then."""

GONE_S = 20.0
"""What was ended is gone by then."""

_UNUSED = DriverRef("none", "none", "none:None")


class Bench:
    """Makes jobs whose fake executors report into one folder, and knows what became of them."""

    def __init__(self, folder: Path, run_root: Path, statemgr: DriverRef = _UNUSED) -> None:
        """`statemgr` is for a driver that looks there for the keys of topologies; fake executors do not."""
        self._folder = folder
        self._run_root = run_root
        self._statemgr = statemgr
        self.jobs: list[str] = []

    def spec(self, topology: str, container_id: int, task: str = "serve") -> ContainerSpec:
        """The spec of one container; `task` is what the fake executor does."""
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
        """A job with one container per task, from 0."""
        self.jobs.append(topology)
        specs = tuple(self.spec(topology, number, task) for number, task in enumerate(tasks))
        return Job(topology, f"{topology}-1", specs, attached)

    def run_dir(self, topology: str) -> Path:
        """Where the job's sockets would be; the scheduler makes and removes it."""
        return self._run_root / topology

    def log_dir(self, topology: str) -> Path:
        """Where its executors say what they are; it stays."""
        return self._folder / "logs" / topology

    def wait(self, topology: str, container_id: int, attempt: int = 1) -> Alive:
        """The container's executor, once its `attempt`-th one is up."""

        def up() -> Alive | None:
            found = alive(self.log_dir(topology), container_id)
            return found if found is not None and found.attempt == attempt else None

        found = wait_until(up, START_S, f"attempt {attempt} of container {container_id} of {topology}")
        assert found is not None
        return found

    def wait_until_nothing_is_left(self, topology: str, *executors: Alive) -> None:
        """The executors and their children are gone, and so is the run directory."""
        for executor in executors:
            for pid in (executor.pid, executor.child):
                wait_until(functools.partial(_ended, pid), GONE_S, f"process {pid} is gone")
        wait_until(lambda: not self.run_dir(topology).exists(), GONE_S, "the run directory is gone")

    def forget(self, topology: str) -> None:
        """What executors said of themselves in a job that is over; one that was killed could not take it back."""
        for note in self.log_dir(topology).glob("*.alive"):
            note.unlink()


def runs(pid: int) -> bool:
    """Whether there is such a process, zombies aside; 0 stands for none."""
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
