"""What is known of a signal that ended a child: above all, whether the kernel killed the child for memory.

The kernel only counts such kills, per cgroup or per host. A child counts as killed for memory if the count has grown
within the last seconds, and each growth explains one child. The executor looks at the count regularly, so that a kill
of another process long ago explains nothing.
"""

from __future__ import annotations

import signal
from collections import deque
from collections.abc import Callable

from heron.kernel.own_cgroup import MemoryKills, OwnCgroup

__all__ = ["KillCauses"]

_RECENT_S = 10.0  # a process with much memory needs a moment between its kill and its end
_SENT_BY_OTHERS = frozenset({signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
_MOST_READINGS = 64


class KillCauses:
    """The causes of signals to the children of one container; `clock` returns monotonic seconds."""

    def __init__(self, cgroup: OwnCgroup, clock: Callable[[], float]) -> None:
        self._cgroup = cgroup
        self._clock = clock
        self._readings: deque[tuple[float, MemoryKills | None]] = deque(maxlen=_MOST_READINGS)
        self._used = 0  # the count up to which growth has explained a child
        self.look()

    def look(self) -> None:
        """Notes the present count."""
        now_s = self._clock()
        self._readings.append((now_s, self._cgroup.memory_kills()))
        while len(self._readings) > 1 and self._readings[1][0] <= now_s - _RECENT_S:
            self._readings.popleft()

    def cause(self, sent: signal.Signals) -> str:
        """What is known of this signal, which the executor did not send; "" for a fault of the process itself."""
        if sent not in _SENT_BY_OTHERS:
            return ""
        if sent is not signal.SIGKILL:
            return "not by its executor"
        limit_bytes = self._cgroup.memory_limit_bytes()
        limit = "no memory limit is set" if limit_bytes is None else f"limit {_size(limit_bytes)}"
        kills = self._cgroup.memory_kills()
        if kills is None:
            return f"not by its executor; whether by the kernel for memory is not known; {limit}"
        if not self._explains(kills):
            return f"not by its executor, and not by the kernel for memory; {limit}"
        if kills.of_host:
            return f"not by its executor; the kernel has just killed a process of this host for memory; {limit}"
        return f"by the kernel for memory; {limit}"

    def _explains(self, kills: MemoryKills) -> bool:
        """Whether the count has grown recently beyond what has explained other children; then it explains this one."""
        _, before = self._readings[0]
        if before is None or before.of_host != kills.of_host:
            return False
        used = max(self._used, before.number)
        if kills.number <= used:
            return False
        self._used = used + 1
        return True


def _size(size_bytes: float) -> str:
    """``512 MiB`` or ``1.5 GiB``."""
    mib = size_bytes / 2**20
    return f"{mib:.0f} MiB" if mib < 1024 else f"{mib / 1024:.1f} GiB"
