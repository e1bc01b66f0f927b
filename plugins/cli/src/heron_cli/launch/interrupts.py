"""Ctrl-C, SIGTERM and a hang-up as a wish that is looked at between two steps, so that no step is cut in half."""

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
    """Catches the signals while it is entered; any number of them is one wish. Main thread only."""

    def __init__(self) -> None:
        self._wish = threading.Event()
        self._before: dict[signal.Signals, object] = {}

    def requested(self) -> bool:
        """Whether one has come; once true it stays true."""
        return self._wish.is_set()

    def wait(self, timeout_s: float) -> bool:
        """Waits for one for at most that long; whether one has come."""
        return self._wish.wait(timeout_s)

    def __enter__(self) -> Interrupts:
        for each in _CAUGHT:
            self._before[each] = signal.signal(each, self._mark)
        return self

    def give_back(self) -> None:
        """Stops catching, for code that wants to be interrupted anywhere; idempotent.

        Raises:
            KeyboardInterrupt: when a signal has come already.
        """
        self._restore()
        if self._wish.is_set():
            raise KeyboardInterrupt

    def __exit__(self, *_: object) -> None:
        self._restore()

    def _restore(self) -> None:
        while self._before:
            signal.signal(*self._before.popitem())  # type: ignore[arg-type]  # what signal.signal itself returned

    def _mark(self, _number: int, _frame: FrameType | None) -> None:
        self._wish.set()


@contextmanager
def repeated_interrupts() -> Iterator[None]:
    """Ctrl-C comes again until it is heard: in callbacks of imports and of finalizers Python drops an exception."""

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
