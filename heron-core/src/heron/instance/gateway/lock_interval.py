"""How long the gateway waits for the interpreter lock before it makes the task thread release it.

The two threads of an instance share the lock. While the process has a processor, a short interval keeps the latency
low. While it waits for one, a short interval only makes the gateway wake often, find the lock held by a thread that
does not run, and take the processor from other processes. That halved the throughput of many tasks on few cores
(decision 026).
"""

from __future__ import annotations

import sys
from collections.abc import Callable

__all__ = ["LockInterval"]

_LEAST_S = 0.001  # Python's default of 5 ms means 15 ms at the 99th percentile of the latency (measured)
_MOST_S = 0.1
_SHARE_OF_DELAY = 0.5
_DECAY = 0.8


class LockInterval:
    """The switch interval of this process, by the delays of the gateway's timers.

    A timer is late by the interval itself and by the wait for a processor. If both are equal, half of the delay is the
    interval, so it stays: the interval approaches the wait. Without such waits it falls by a fifth at each call.
    """

    def __init__(self, apply: Callable[[float], None] = sys.setswitchinterval) -> None:
        self._apply = apply
        self._former_s = sys.getswitchinterval()
        self.interval_s = _LEAST_S
        apply(_LEAST_S)

    @property
    def is_least(self) -> bool:
        """Whether it cannot fall further."""
        return self.interval_s == _LEAST_S

    def adapt(self, late_s: float) -> None:
        """Sets the interval after the gateway woke `late_s` seconds too late."""
        before_s = self.interval_s
        self.interval_s = min(_MOST_S, max(_LEAST_S, _SHARE_OF_DELAY * late_s, _DECAY * before_s))
        if self.interval_s != before_s:
            self._apply(self.interval_s)

    def linger_s(self, usual_s: float) -> float:
        """The linger now: a shorter one than two waits for a processor would only make batches small."""
        return max(usual_s, 2 * self.interval_s)

    def restore(self) -> None:
        """Sets the interval that the process had before."""
        self._apply(self._former_s)
