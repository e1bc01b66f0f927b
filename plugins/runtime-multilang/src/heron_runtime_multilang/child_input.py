"""What waits for the stdin of a child. The task thread appends and writes; the thread of the pipes writes the rest."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable

__all__ = ["ChildInput"]

_WRITE_BYTES = 16 * 1024


class ChildInput:
    """Messages in their order, and in front of them those that a child waits for.

    `lock` is for the write itself, and for the rest of a message that the pipe had no room for. `is_blocked` says that
    the other thread waits for room. `wake` wakes the other thread if it sleeps.
    """

    def __init__(self, descriptor: int, wake: Callable[[], None]) -> None:
        self.lock = threading.Lock()
        self.is_open = True
        self.is_blocked = False
        self._descriptor = descriptor
        self._wake = wake
        self._first: deque[bytes] = deque()
        self._waiting: deque[bytes] = deque()
        self._appended_bytes = self._written_bytes = 0
        self._chunk = memoryview(b"")

    def send(self, message: bytes) -> None:
        """Send a message behind those that wait, at the latest with the next `flush`."""
        self._appended_bytes += len(message)
        self._waiting.append(message)
        if self._appended_bytes - self._written_bytes >= _WRITE_BYTES:
            self.flush()

    def send_first(self, message: bytes) -> None:
        """Send a message before those that wait, at once if the pipe has room: the child waits for it."""
        self._first.append(message)
        self.flush()

    def add_first(self, message: bytes) -> None:
        """Append a message before those that wait, in the thread of the pipes, which writes next."""
        self._first.append(message)

    def flush(self) -> None:
        """Write what waits, in this thread: the other one would have to wait for the interpreter lock first."""
        if self.is_blocked or not (self._first or self._waiting):
            return
        if not self.lock.acquire(blocking=False):
            return  # the other thread writes now, and looks once more before it sleeps
        try:
            is_written = self.push()
        except OSError:
            is_written = False
        finally:
            self.lock.release()
        if not is_written:
            self._wake()

    @property
    def waiting_bytes(self) -> int:
        """The size of the messages that no pipe has."""
        return self._appended_bytes - self._written_bytes

    def can_write(self) -> bool:
        """Whether something waits, and not for room."""
        return self.is_open and not self.is_blocked and bool(self._first or self._waiting or self._chunk)

    def push(self) -> bool:
        """With the lock: write what waits; return whether the pipe has taken everything.

        Raises:
            OSError: when the child has closed it.
        """
        while self.is_open:
            if not self._chunk:
                self._chunk = memoryview(self._next_chunk())
                if not self._chunk:
                    break
            try:
                written = os.write(self._descriptor, self._chunk)
            except BlockingIOError:
                return False
            self._chunk = self._chunk[written:]
        return True

    def close(self) -> None:
        """With the lock: nothing more is written, and what waits is dropped."""
        self.is_open = False
        self._first.clear()
        self._waiting.clear()
        self._chunk = memoryview(b"")
        self._written_bytes = self._appended_bytes

    def _next_chunk(self) -> bytes:
        first, waiting = self._first, self._waiting
        parts: list[bytes] = []
        while first:
            parts.append(first.popleft())
        size = 0
        while waiting and size < _WRITE_BYTES:
            part = waiting.popleft()
            size += len(part)
            parts.append(part)
        self._written_bytes += size
        return b"".join(parts)
