"""The lock of a task's output: it decides which of the task's two threads may flush."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType

from heron.instance.metrics.task_time import TaskTime

__all__ = ["EmitLock"]


class EmitLock:
    """Decides which thread may flush: the task thread, or the gateway while the task thread is in the author's code.

    A tuple waits no longer than the linger, even if `next_tuple` or `process` blocks for minutes after its emit. The
    task thread therefore holds the lock, except while it calls the author's code, ``with lock.released():``. Then the
    gateway may acquire it. Emits continue meanwhile: they only append, and append the row itself last, so that a flush
    takes a prefix of each list. Releasing and reacquiring cost 0.1 us, once per slice of calls.

    The gateway tries once after each linger. If it was in vain, the task thread calls `flush` itself as soon as it has
    released the lock: the author's code may block from then on. `time` gets what the author's code takes.
    """

    __slots__ = ("_flush", "_is_released", "_is_wanted", "_lock", "_time")

    def __init__(self, time: TaskTime, flush: Callable[[], None]) -> None:
        self._time = time
        self._flush = flush
        self._is_wanted = False
        self._lock = threading.Lock()
        self._lock.acquire()
        self._is_released = False

    def released(self) -> EmitLock:
        """Task thread: a context manager around calls of the author's code."""
        return self

    def __enter__(self) -> None:
        self._is_released = True
        self._lock.release()
        if self._is_wanted:  # behind the release: from here on the gateway's next try succeeds
            self._is_wanted = False
            self._flush()
        self._time.enter_user()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._time.leave_user()
        self._lock.acquire()
        self._is_released = False

    @contextmanager
    def held(self) -> Iterator[None]:
        """Task thread: holds the lock for a flush of its own, also within the author's code."""
        if not self._is_released:
            yield
            return
        with self._lock:
            yield

    def try_acquire(self) -> bool:
        """Gateway: acquires the lock if the task thread is in the author's code."""
        self._is_wanted = True  # in front of the try: the task thread may release the lock right behind it
        if self._lock.acquire(blocking=False):
            self._is_wanted = False
            return True
        return False

    def release(self) -> None:
        """Gateway: releases the lock after `try_acquire`."""
        self._lock.release()
