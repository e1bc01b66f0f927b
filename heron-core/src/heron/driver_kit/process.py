"""The frame around the main function of a role process, and the tie to the process that started it.

No child outlives its parent. The kernel can send a process a signal when its parent ends (Linux: PR_SET_PDEATHSIG).
The child sets this up itself as its first act, configured by two variables (see `heron.driver_kit.spawn`) which it
then removes, so that the programs it starts do not see them. That way the parent needs no code between fork and exec,
and Python can use its fast way to start a process. The parent may have ended before the child asked: so the child
compares its parent afterwards and leaves when it is another one. The signal comes when the *thread* that spawned ends:
spawn from the main thread. Where the kernel has no such signal, a daemon thread looks at the parent's id every second.
"""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable
from typing import NoReturn

from heron.driver_kit.signals import Signals
from heron.errors import HeronError, StateError

__all__ = [
    "DEATH_SIGNAL",
    "EXIT_AWAY",
    "EXIT_USER_INIT",
    "PARENT_PID",
    "bind_to_parent",
    "run_role",
    "set_parent_death_signal",
]

PARENT_PID = "HERON_PARENT_PID"
DEATH_SIGNAL = "HERON_DEATH_SIGNAL"

EXIT_USER_INIT = 3
"""How an instance exits when user code could not be constructed or initialised."""

EXIT_AWAY = 75
"""How a process exits that cannot work for want of its surroundings, the state above all (EX_TEMPFAIL of sysexits)."""

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_HEARTBEAT_S = 1.0  # only without the kernel's signal; children must be gone 5 s after their parent

_EXIT_FAILED = 1

_log = logging.getLogger(__name__)


def bind_to_parent() -> None:
    """Does what `spawn` in the parent asked for by the environment; the first act of a role's main file.

    Exits at once with code 1 when that parent is gone already. Without a request it does nothing.
    """
    parent = os.environ.pop(PARENT_PID, "")
    name = os.environ.pop(DEATH_SIGNAL, "")
    if parent and name:
        set_parent_death_signal(signal.Signals[name], int(parent))


def set_parent_death_signal(sent: signal.Signals, parent_pid: int) -> None:
    """Has this process sent a signal when its parent ends; exits when the parent is another one already."""
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(_PR_SET_PDEATHSIG, int(sent), 0, 0, 0) != 0:
            code = ctypes.get_errno()
            raise OSError(code, f"prctl(PR_SET_PDEATHSIG): {os.strerror(code)}")
    else:
        watcher = threading.Thread(target=_watch_parent, args=(sent, parent_pid), name="parent-watch", daemon=True)
        watcher.start()
    if os.getppid() != parent_pid:
        os._exit(_EXIT_FAILED)  # nothing was begun, so there is nothing to tidy up and nobody to tell


def run_role(
    role: str,
    main: Callable[[Signals], int],
    caught: Iterable[signal.Signals] = (signal.SIGTERM, signal.SIGINT),
) -> NoReturn:
    """Runs the main function of a role process and exits with its code, or with 1 after an exception.

    `main` is given the signals as something to poll and returns when `Signals.stop_requested`. An exception ends as
    one line on stderr and, with its traceback unless it is a HeronError, in the log; what the state manager refuses is
    no fault of the process, and has an exit code of its own. A thread that dies of an exception is logged too.
    """
    bind_to_parent()
    signals = Signals(caught)
    threading.excepthook = _log_thread_end
    try:
        code = main(signals)
    except HeronError as error:
        _log.critical("%s ends: %s", role, error)
        sys.stderr.write(f"heron {role}: error: {error}\n")
        code = EXIT_AWAY if isinstance(error, StateError) else _EXIT_FAILED
    except Exception as error:
        _log.critical("%s ends by %s: %s", role, type(error).__name__, error, exc_info=True)
        sys.stderr.write(f"heron {role}: {type(error).__name__}: {error}; the traceback is in its log\n")
        code = _EXIT_FAILED
    logging.shutdown()
    sys.exit(code)


def _log_thread_end(args: threading.ExceptHookArgs) -> None:
    name = args.thread.name if args.thread else "unknown"
    if args.exc_type is not SystemExit and args.exc_value is not None:
        _log.critical("thread %s ended by %s", name, args.exc_type.__name__, exc_info=args.exc_value)


def _watch_parent(sent: signal.Signals, parent_pid: int) -> None:
    never = threading.Event()
    while not never.wait(_HEARTBEAT_S):
        if os.getppid() != parent_pid:
            os.kill(os.getpid(), sent)
            return
