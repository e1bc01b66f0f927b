"""What a supervisor that was killed left behind: its executors, on their way out, and its files."""

from __future__ import annotations

import shutil
import signal
import threading

from heron.clock import monotonic_s
from heron.errors import SchedulerError
from heron_scheduler_local.job_folder import JobFolder
from heron_scheduler_local.process_list import ProcessList

__all__ = ["clear"]

_LEAVE_S = 5.0  # executors get SIGTERM when their supervisor dies and are gone within this time
_KILLED_S = 2.0
_POLL_S = 0.02


def clear(folder: JobFolder) -> None:
    """Waits for the executors to go, kills those that stay, removes run directories and files; the lock stays.

    For the owner of the folder's lock, which shows that there is no supervisor.

    Raises:
        SchedulerError: when a process cannot be ended; names it.
    """
    processes = ProcessList.read(folder)
    executors = tuple(processes.executors()) if processes is not None else ()
    pause = threading.Event()
    for patience_s, number in ((_LEAVE_S, signal.SIGTERM), (_KILLED_S, signal.SIGKILL)):
        for executor in executors:
            executor.signal_group(number)
        deadline_s = monotonic_s() + patience_s
        while any(each.alive() for each in executors) and monotonic_s() < deadline_s:
            pause.wait(_POLL_S)
    left = [str(each.pid) for each in executors if each.alive()]
    if left:
        message = f"processes {', '.join(left)} of {folder.path.name!r} do not end; see what they wait for with ps"
        raise SchedulerError(message)
    record = folder.read_job()
    for run_dir in record.run_dirs if record is not None else ():
        shutil.rmtree(run_dir, ignore_errors=True)
    folder.empty()
