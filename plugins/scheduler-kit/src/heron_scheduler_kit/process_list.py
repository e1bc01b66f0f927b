"""``processes.json``: the processes of a job, so that a later command finds the orphans of a killed supervisor."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from heron.clock import wait_for
from heron.driver_kit.child_processes import ProcessIdentity
from heron.driver_kit.private_files import write_private
from heron.errors import SchedulerError
from heron_scheduler_kit.job_folder import JobFolder

__all__ = ["ContainerEntry", "ProcessList", "end_orphans"]

_LEAVE_S = 5.0  # executors get SIGTERM when their supervisor dies and are gone within this time
_KILLED_S = 2.0
_INTERVAL_S = 0.02


@dataclass(frozen=True, slots=True)
class ContainerEntry:
    """One container; `pid` is 0 when it does not run."""

    container_id: int
    attempts: int
    last_error: str = ""
    pid: int = 0
    start: str = ""


@dataclass(frozen=True, slots=True)
class ProcessList:
    """The supervisor and its containers as last written."""

    supervisor: ProcessIdentity
    containers: tuple[ContainerEntry, ...]

    def write(self, folder: JobFolder) -> None:
        write_private(folder.processes_file, json.dumps(asdict(self)).encode())

    @classmethod
    def read(cls, folder: JobFolder) -> ProcessList | None:
        """Read the list; None when the supervisor had not started a container."""
        try:
            fields = json.loads(folder.processes_file.read_bytes())
            containers = tuple(ContainerEntry(**each) for each in fields["containers"])
            return cls(ProcessIdentity(**fields["supervisor"]), containers)
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def executors(self) -> Iterable[ProcessIdentity]:
        return (ProcessIdentity(each.pid, each.start) for each in self.containers if each.pid)


def end_orphans(folder: JobFolder) -> None:
    """Wait for the executors of a killed supervisor to end, kill the rest, remove run directories and files.

    The caller holds the lock of the folder, which proves that there is no supervisor. The lock stays.

    Raises:
        SchedulerError: when a process cannot be ended; names it.
    """
    processes = ProcessList.read(folder)
    if processes is not None:
        _end(processes, folder.path.name)
    record = folder.read_job()
    for run_dir in record.run_dirs if record is not None else ():
        shutil.rmtree(run_dir, ignore_errors=True)
    folder.empty()


def _end(processes: ProcessList, topology: str) -> None:
    """End the executors first, then the session of the supervisor, which has all other processes of the job."""
    executors = tuple(processes.executors())
    for executor in executors:
        executor.signal(signal.SIGTERM)
    # Executors of other machines cannot be observed, so they get the full time; after a reboot all have ended.
    elsewhere = processes.supervisor.is_from_here() and not all(each.is_from_here() for each in executors)
    wait_for(lambda: not (elsewhere or any(each.alive() for each in executors)), _LEAVE_S, _INTERVAL_S)
    for each in processes.supervisor.session():
        each.signal(signal.SIGKILL)
    if not wait_for(lambda: not processes.supervisor.session(), _KILLED_S, _INTERVAL_S):
        left: tuple[ProcessIdentity, ...] = processes.supervisor.session()
        message = f"processes {', '.join(str(each.pid) for each in left)} of {topology!r} do not end; see ps for why"
        raise SchedulerError(message)
