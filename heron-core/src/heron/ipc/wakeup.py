"""How one thread wakes another that sleeps in its reactor, at the price of a flag while it is awake.

A full fence is not needed: both sides hold the interpreter lock when they look. The sleeper sets the flag, looks at its
queue once more, and sleeps; the waker fills the queue first and looks at the flag then.
"""

from __future__ import annotations

import os

__all__ = ["Wakeup"]


class Wakeup:
    """An eventfd with a flag that says whether writing to it is needed."""

    __slots__ = ("asleep", "fd")

    def __init__(self) -> None:
        self.fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self.asleep = False

    def wake(self) -> None:
        """Wakes the sleeper if it sleeps."""
        if self.asleep:
            self.asleep = False
            os.eventfd_write(self.fd, 1)

    def drain(self) -> None:
        """Called by the sleeper once awake."""
        self.asleep = False
        try:
            os.eventfd_read(self.fd)
        except BlockingIOError:
            return

    def close(self) -> None:
        """Closes the descriptor."""
        os.close(self.fd)
