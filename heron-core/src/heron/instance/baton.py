"""Who may flush: the task thread, or, while that is in user code, the gateway.

A tuple waits no longer than the linger, also where `next_tuple` or `process` blocks for minutes after it was emitted
(design D2). So the task thread lays the baton down whenever it calls the author's code, and the gateway may borrow it
then. Emits go on meanwhile: they only append, and append the row itself last, so that what a flush takes is a prefix of
each list. Laying down and picking up cost 0.1 us, once per slice of calls.
"""

from __future__ import annotations

import threading
from types import TracebackType

__all__ = ["Baton"]


class Baton:
    """Held by the task thread except within ``with baton:``, which stands around calls of the author's code."""

    __slots__ = ("_down", "_lock")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()
        self._down = False

    def __enter__(self) -> None:
        self._down = True
        self._lock.release()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._lock.acquire()
        self._down = False

    def take_back(self) -> bool:
        """Task thread, within the author's code: takes it for a flush of its own; whether `return_` is due."""
        if not self._down:
            return False
        self._lock.acquire()
        return True

    def return_(self) -> None:
        """Task thread: lays it down again."""
        self._lock.release()

    def borrow(self) -> bool:
        """Gateway: takes it if it is free now."""
        return self._lock.acquire(blocking=False)
