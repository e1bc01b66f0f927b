"""The child's side of a process that never outlives its parent; `heron.driver_kit.child_processes` is the other side.

The kernel can send a process a signal when its parent ends (Linux: PR_SET_PDEATHSIG). The parent names the signal in
two environment variables. The child calls `bind_to_parent` first: it removes the variables, so that its own children do
not see them, and asks the kernel for the signal. So the parent runs no code between fork and exec, and Python can use
its fast way to start a process. The parent may have ended before the child asked; therefore the child compares its
parent afterwards and exits when it differs. The kernel sends the signal when the *thread* that spawned the child ends:
spawn from the main thread. On other systems a daemon thread checks the parent's id every second.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading

__all__ = [
    "DEATH_SIGNAL",
    "END_NOTE",
    "EXIT_TEMPORARY",
    "EXIT_USER_INIT",
    "PARENT_PID",
    "bind_to_parent",
    "set_parent_death_signal",
]

PARENT_PID = "HERON_PARENT_PID"
DEATH_SIGNAL = "HERON_DEATH_SIGNAL"
"""The environment variables that `spawn` sets and `bind_to_parent` removes."""

EXIT_USER_INIT = 3
"""Exit code of an instance whose user code could not be constructed or initialised, or has stopped."""

EXIT_TEMPORARY = 75
"""Exit code of a process that cannot work now: the state manager is away, or no space (EX_TEMPFAIL of sysexits)."""

END_NOTE = ".end"
"""Suffix of the file beside a role file in which a process notes that an exit code with a meaning is its own.

Author's code can end the process with any code, for example by `os._exit`; the executor must not take it for Heron's.
"""

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_CHECK_S = 1.0  # only without the kernel's signal; children must be gone 5 s after their parent
_EXIT_FAILED = 1


def bind_to_parent() -> None:
    """Ask for the signal that `spawn` in the parent named; the first call in the main file of a child process.

    Exits at once with code 1 when that parent has already ended. Without the two variables it does nothing.
    """
    parent = os.environ.pop(PARENT_PID, "")
    name = os.environ.pop(DEATH_SIGNAL, "")
    if parent and name:
        set_parent_death_signal(signal.Signals[name], int(parent))


def set_parent_death_signal(sent: signal.Signals, parent_pid: int) -> None:
    """Request a signal for the end of the parent; exit with code 1 when the parent is another process already.

    Raises:
        OSError: when the kernel refuses.
    """
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(_PR_SET_PDEATHSIG, int(sent), 0, 0, 0) != 0:
            code = ctypes.get_errno()
            raise OSError(code, f"prctl(PR_SET_PDEATHSIG): {os.strerror(code)}")
    else:
        watcher = threading.Thread(target=_watch_parent, args=(sent, parent_pid), name="parent-watch", daemon=True)
        watcher.start()
    if os.getppid() != parent_pid:
        os._exit(_EXIT_FAILED)  # nothing was started that needs cleaning up


def _watch_parent(sent: signal.Signals, parent_pid: int) -> None:
    never = threading.Event()
    while not never.wait(_CHECK_S):
        if os.getppid() != parent_pid:
            os.kill(os.getpid(), sent)
            return
