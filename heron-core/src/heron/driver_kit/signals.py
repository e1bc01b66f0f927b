"""Signals that a poller can wait for.

A signal handler runs between two arbitrary bytecodes. So the handler only records the signal, and the loop that
owns the state reads the record. The file descriptor wakes a poller in any thread.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["EXIT_TERMINATED", "Signals"]

EXIT_TERMINATED = 128 + signal.SIGTERM
"""Exit code of a process that SIGTERM ended."""


class Signals:
    """Catches the given signals until the process ends. Create it once, in the main thread."""

    def __init__(self, caught: Iterable[signal.Signals] = (signal.SIGTERM, signal.SIGINT)) -> None:
        self._reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC) if hasattr(os, "pipe2") else _pipe()
        self._stop = False
        self._abrupt = False
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        for each in caught:
            signal.signal(each, self._mark)

    @property
    def stop_requested(self) -> bool:
        """Whether SIGTERM or SIGINT has arrived; it never becomes false again."""
        return self._stop

    def fileno(self) -> int:
        """Return the descriptor that becomes readable when a signal arrives; register it with a poller."""
        return self._reader

    def read(self) -> tuple[signal.Signals, ...]:
        """Return the signals since the last call, oldest first; never blocks."""
        numbers = self.drain()
        for number in numbers:
            self._mark(number, None)  # another thread may read before the main thread has run the handler
        return tuple(signal.Signals(number) for number in numbers)

    def drain(self) -> bytes:
        """Return the numbers of the signals since the last call; never blocks. The main thread runs their handlers."""
        try:
            return os.read(self._reader, 4096)
        except BlockingIOError:
            return b""

    @contextmanager
    def abrupt(self) -> Iterator[None]:
        """Raise SystemExit on SIGTERM and SIGINT in this block, also during a blocking call or for an earlier signal.

        Use it while the process has nothing to shut down in order. Only for the main thread.
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
            self._abrupt = False  # only once, so that the clean-up on the way out completes
            raise SystemExit(EXIT_TERMINATED)


def _pipe() -> tuple[int, int]:
    """`os.pipe2` for systems without it; `os.pipe` is close-on-exec already."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    return reader, writer
