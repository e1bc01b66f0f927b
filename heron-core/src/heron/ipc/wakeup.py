"""Wakes a thread that sleeps in its reactor. While that thread is awake, a wake-up costs only a look at a flag.

No memory fence is needed, because both threads hold the interpreter lock when they read the flag. The sleeper sets the
flag, checks its queue once more, and sleeps. The waker fills the queue first and reads the flag then.
"""

from __future__ import annotations

import os

__all__ = ["Wakeup"]


class Wakeup:
    """An eventfd, and a flag that is true while a write to it is needed."""

    __slots__ = ("asleep", "fd")

    def __init__(self) -> None:
        self.fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self.asleep = False

    def wake(self) -> None:
        """Wakes the sleeper, if it sleeps."""
        if self.asleep:
            self.asleep = False
            os.eventfd_write(self.fd, 1)

    def drain(self) -> None:
        """Resets the flag and the eventfd; the sleeper calls it when it is awake."""
        self.asleep = False
        try:
            os.eventfd_read(self.fd)
        except BlockingIOError:
            return

    def close(self) -> None:
        """Closes the descriptor."""
        os.close(self.fd)
