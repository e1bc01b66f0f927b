"""What a supervisor that was killed left behind: its executors, on their way out, and its files."""

from __future__ import annotations

import shutil
import signal

from heron.clock import wait_for
from heron.driver_kit.child_processes import ProcessIdentity
from heron.errors import SchedulerError
from heron_scheduler_kit.job_folder import JobFolder
from heron_scheduler_kit.process_list import ProcessList

__all__ = ["clear"]

_LEAVE_S = 5.0  # executors get SIGTERM when their supervisor dies and are gone within this time
_KILLED_S = 2.0
_POLL_S = 0.02


def clear(folder: JobFolder) -> None:
    """Waits for the executors to go, kills what stays, removes run directories and files; the lock stays.

    For the owner of the folder's lock, which shows that there is no supervisor.

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
    """The supervisor led a session, and all that it started is in it, unless it went elsewhere by itself."""
    executors = tuple(processes.executors())
    for executor in executors:
        executor.signal(signal.SIGTERM)
    # Those of other machines nobody here sees end; a boot ago they have ended long since.
    elsewhere = processes.supervisor.is_from_here() and not all(each.is_from_here() for each in executors)
    wait_for(lambda: not (elsewhere or any(each.alive() for each in executors)), _LEAVE_S, _POLL_S)
    for each in processes.supervisor.session():
        each.signal(signal.SIGKILL)
    if not wait_for(lambda: not processes.supervisor.session(), _KILLED_S, _POLL_S):
        left: tuple[ProcessIdentity, ...] = processes.supervisor.session()
        message = f"processes {', '.join(str(each.pid) for each in left)} of {topology!r} do not end; see ps for why"
        raise SchedulerError(message)
