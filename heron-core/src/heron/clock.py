"""Time, and the only module that reads it. Durations are monotonic seconds; dates are wall-clock seconds."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Protocol

__all__ = [
    "Clock",
    "SystemClock",
    "monotonic_ns",
    "monotonic_s",
    "sleep",
    "thread_cpu_clock",
    "thread_cpu_s",
    "wait_for",
    "wall_ns",
    "wall_s",
]

monotonic_s = time.monotonic
"""Monotonic seconds; all processes of a host share the scale."""

wall_s = time.time
"""Seconds since the epoch, for people. Never use it for a deadline: it may jump."""

monotonic_ns = time.monotonic_ns
"""The scale of `monotonic_s` in nanoseconds."""

wall_ns = time.time_ns
"""The scale of `wall_s` in nanoseconds."""


sleep = time.sleep
"""Stops the calling thread for some seconds. Tests pass another function: see `heron.checkpoints.load_retries`."""

thread_cpu_s = time.thread_time
"""Processor seconds of the calling thread."""


class Clock(Protocol):
    """The clock that waiting and measuring code receives, so that tests can control time."""

    def monotonic_s(self) -> float:
        """Monotonic seconds."""
        ...

    def wall_s(self) -> float:
        """Seconds since the epoch."""
        ...


class SystemClock:
    """The clock of the machine."""

    __slots__ = ()

    monotonic_s = staticmethod(time.monotonic)
    wall_s = staticmethod(time.time)


def thread_cpu_clock(ident: int) -> Callable[[], float]:
    """Return a function that returns the processor seconds of a thread of this process so far.

    `ident` is `threading.Thread.ident`. The function must not be called after the thread has ended.
    """
    clock_id = time.pthread_getcpuclockid(ident)
    return lambda: time.clock_gettime(clock_id)


def wait_for(predicate: Callable[[], bool], timeout_s: float, interval_s: float) -> bool:
    """Check `predicate` at once and then every `interval_s` seconds; return False when it is false after `timeout_s`.

    For conditions without an event, such as the end of a process that is not a child.
    """
    deadline_s = monotonic_s() + timeout_s
    pause = threading.Event()
    while not predicate():
        if monotonic_s() > deadline_s:
            return False
        pause.wait(interval_s)
    return True
