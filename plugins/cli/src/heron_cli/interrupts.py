"""Turns Ctrl-C, SIGTERM and SIGHUP into a flag that is checked between two steps, so that no step is cut off."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["Interrupts", "repeated_interrupts"]

_AGAIN_S = 0.5
_CAUGHT = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """Catches the signals in its block; repeated signals count once. For the main thread only."""

    def __init__(self) -> None:
        self._requested = threading.Event()
        self._before: dict[signal.Signals, object] = {}

    def requested(self) -> bool:
        """Return whether a signal has arrived; once true, the result stays true."""
        return self._requested.is_set()

    def wait(self, timeout_s: float) -> bool:
        """Wait for a signal for at most `timeout_s`; return whether one has arrived."""
        return self._requested.wait(timeout_s)

    def __enter__(self) -> Interrupts:
        for each in _CAUGHT:
            self._before[each] = signal.signal(each, self._mark)
        return self

    def give_back(self) -> None:
        """Stop catching signals, for code that may be interrupted anywhere; idempotent.

        Raises:
            KeyboardInterrupt: when a signal has already arrived.
        """
        self._restore()
        if self._requested.is_set():
            raise KeyboardInterrupt

    def __exit__(self, *_: object) -> None:
        self._restore()

    def _restore(self) -> None:
        while self._before:
            signal.signal(*self._before.popitem())  # type: ignore[arg-type]  # a value that signal.signal returned

    def _mark(self, _number: int, _frame: FrameType | None) -> None:
        self._requested.set()


@contextmanager
def repeated_interrupts() -> Iterator[None]:
    """Repeat Ctrl-C until this block ends: Python drops exceptions in callbacks of imports and of finalizers."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)
        raise KeyboardInterrupt

    before = {each: signal.signal(each, interrupt) for each in (signal.SIGINT, signal.SIGALRM)}
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        for number, handler in before.items():
            signal.signal(number, handler)
