"""Runs the main function of a role process: signals in, exit code out."""

from __future__ import annotations

import logging
import signal
import sys
import threading
from collections.abc import Callable, Iterable
from typing import NoReturn

from heron.driver_kit.parent_process import EXIT_TEMPORARY, bind_to_parent
from heron.driver_kit.signals import Signals
from heron.errors import HeronError, StateError

__all__ = ["run_role"]

_EXIT_FAILED = 1

_log = logging.getLogger(__name__)


def run_role(
    role: str,
    main: Callable[[Signals], int],
    caught: Iterable[signal.Signals] = (signal.SIGTERM, signal.SIGINT),
) -> NoReturn:
    """Run the main function of a role process and exit with its code, or with 1 after an exception.

    `main` polls the signals and returns when `Signals.stop_requested` is true. An exception is reported as one line on
    stderr and in the log, with its traceback unless it is a HeronError. A StateError is not the fault of the process
    and has its own exit code. An exception that ends a thread is logged too.
    """
    bind_to_parent()
    signals = Signals(caught)
    threading.excepthook = _log_thread_end
    try:
        code = main(signals)
    except HeronError as error:
        _log.critical("%s ends: %s", role, error)
        sys.stderr.write(f"heron {role}: error: {error}\n")
        code = EXIT_TEMPORARY if isinstance(error, StateError) else _EXIT_FAILED
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
