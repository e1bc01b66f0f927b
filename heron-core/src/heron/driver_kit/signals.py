"""Signals as something a poller can wait for.

A handler that does the work itself runs between two arbitrary bytecodes; here it only marks, and the loop that owns
the state reads the mark. The file descriptor wakes a poller in any thread.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["EXIT_TERMINATED", "Signals"]

EXIT_TERMINATED = 128 + signal.SIGTERM
"""How a process exits that was told to by SIGTERM."""


class Signals:
    """Catches the given signals for the rest of the process's life. Made once, in the main thread."""

    def __init__(self, caught: Iterable[signal.Signals] = (signal.SIGTERM, signal.SIGINT)) -> None:
        self._reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC) if hasattr(os, "pipe2") else _pipe()
        self._stop = False
        self._abrupt = False
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        for each in caught:
            signal.signal(each, self._mark)

    @property
    def stop_requested(self) -> bool:
        """Whether SIGTERM or SIGINT has come; once true it stays true."""
        return self._stop

    def fileno(self) -> int:
        """Readable when a signal has come since the last `read`; register it with a poller."""
        return self._reader

    def read(self) -> tuple[signal.Signals, ...]:
        """The signals that came since the last call, oldest first; never blocks."""
        try:
            numbers = os.read(self._reader, 4096)
        except BlockingIOError:
            return ()
        for number in numbers:
            self._mark(number, None)  # another thread may read before the main thread has run the handler
        return tuple(signal.Signals(number) for number in numbers)

    @contextmanager
    def abrupt(self) -> Iterator[None]:
        """In this block SIGTERM and SIGINT raise SystemExit, also in a call that blocks; so does one that came before.

        For the time when nothing has begun that has to be ended in order. In the main thread only.
        """
        self._abrupt = True
        try:
            self._leave()
            yield
        finally:
            self._abrupt = False

    def _mark(self, number: int, _frame: FrameType | None) -> None:
        if number in (signal.SIGTERM, signal.SIGINT):
            self._stop = True
            self._leave()

    def _leave(self) -> None:
        if self._stop and self._abrupt:
            self._abrupt = False  # once: what is cleared on the way out is cleared
            raise SystemExit(EXIT_TERMINATED)


def _pipe() -> tuple[int, int]:
    """`os.pipe2` for systems without it; `os.pipe` is close-on-exec already."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    return reader, writer
