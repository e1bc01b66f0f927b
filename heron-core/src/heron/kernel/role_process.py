"""Runs the main function of a role process: signals in, exit code out."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NoReturn

from heron.author_text import named_error, traceback_text
from heron.driver_kit.parent_process import END_NOTE, EXIT_TEMPORARY, EXIT_USER_INIT, bind_to_parent
from heron.driver_kit.signals import EXIT_TERMINATED, Signals
from heron.errors import HeronError, StateError

__all__ = ["report_end", "run_role"]

_EXIT_FAILED = 1
_WITH_MEANING = frozenset({EXIT_TEMPORARY, EXIT_USER_INIT})
_THREADS_END_WITHIN_S = 2.0  # as long as an executor that must stop itself waits for its instances

_log = logging.getLogger(__name__)


def run_role(
    role: str,
    main: Callable[[Signals], int],
    caught: Iterable[signal.Signals] = (signal.SIGTERM, signal.SIGINT),
) -> NoReturn:
    """Run the main function of a role process and exit with its code, or with 1 after an exception.

    `main` polls the signals and returns when `Signals.stop_requested` is true. An exception is reported as one line on
    stderr and in the log, with its traceback unless it is a HeronError. A StateError is not the fault of the process
    and has its own exit code. An exception that ends a thread is logged too. Threads and exit functions of the author
    may take 2 s after `main`; then the process ends without them, and names the threads. An exception of a component
    arrives as a UserCodeError (`ComponentRunner.user_failed`).
    """
    bind_to_parent()
    signals = Signals(caught)
    threading.excepthook = _log_thread_end
    last_line = ""
    try:
        code = main(signals)
    except HeronError as error:
        last_line, code = report_end(role, error), EXIT_TEMPORARY if isinstance(error, StateError) else _EXIT_FAILED
    except BaseException as error:  # the code of an author or a driver may raise anything
        if isinstance(error, SystemExit) and error.code == EXIT_TERMINATED and signals.stop_requested:
            code = EXIT_TERMINATED  # SIGTERM came while the process waited
        else:
            last_line, code = report_end(role, error), _EXIT_FAILED
    if code in _WITH_MEANING:
        _note_end()
    threading.Thread(target=_end_anyway, args=(role, code, last_line), name="end-anyway", daemon=True).start()
    sys.exit(code)


def report_end(role: str, error: BaseException) -> str:
    """Reports the exception that ends a process, and returns the line that stderr shows."""
    if isinstance(error, HeronError):
        line = f"heron {role}: error: {error}"
        _log.critical("%s ends: %s", role, error)
    else:
        line = f"heron {role}: {named_error(error)}; the traceback is in its log"
        _log.critical("%s ends by %s", role, traceback_text(error))
    _print(line)
    return line


def _note_end() -> None:
    if len(sys.argv) > 1:
        try:
            Path(sys.argv[1]).with_suffix(END_NOTE).touch(mode=0o600)
        except OSError as error:
            _log.warning("the exit code cannot be noted, the executor takes it for the author's: %s", error)


def _end_anyway(role: str, code: int, last_line: str) -> None:
    """Ends the process although a thread or an exit function goes on: Python would wait for it for ever."""
    threading.Event().wait(_THREADS_END_WITHIN_S)
    threads = [each for each in threading.enumerate() if not each.daemon and each is not threading.main_thread()]
    places = sys._current_frames()
    names = [f"{each.name!r}{_place(places.get(each.ident or 0))}" for each in threads]
    what = f"the threads {', '.join(names)}" if names else "its exit functions"
    text = (
        f"heron {role}: ends after {_THREADS_END_WITHIN_S:g} s without waiting for {what}; end them in close(), "
        "or make them daemon threads"
    )
    _log.warning("%s", text)
    _print(f"{text}\n{last_line}" if last_line else text)  # the executor shows the last line as the reason
    logging.shutdown()
    os._exit(code)


def _place(frame: object) -> str:
    code, line = getattr(frame, "f_code", None), getattr(frame, "f_lineno", 0)
    return f" (at {code.co_filename}, line {line})" if code is not None else ""


def _print(line: str) -> None:
    try:
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()
    except Exception:  # the author may have closed or replaced it
        _log.warning("stderr cannot be written: %s", line)


def _log_thread_end(args: threading.ExceptHookArgs) -> None:
    name = args.thread.name if args.thread else "unknown"
    if args.exc_type is not SystemExit and args.exc_value is not None:
        _log.critical("thread %s ended by %s", name, args.exc_type.__name__, exc_info=args.exc_value)
