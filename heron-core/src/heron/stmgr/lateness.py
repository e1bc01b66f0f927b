"""How long a process came too late to its own timer, in all: whoever is slow itself. Pure.

Nobody else can say it of a stream manager whose neighbours are all in its own container.
"""

from __future__ import annotations

__all__ = ["Lateness"]

_TOLERATED_S = 0.1  # a round over full queues takes some milliseconds; a busy machine some more


class Lateness:
    """Is told each time that a timer calls."""

    __slots__ = ("_called_s", "_period_s", "total_s")

    def __init__(self, period_s: float, now_s: float) -> None:
        self._period_s = period_s
        self._called_s = now_s
        self.total_s = 0.0

    def called(self, now_s: float) -> None:
        """The timer calls (monotonic seconds)."""
        late_s = now_s - self._called_s - self._period_s
        self._called_s = now_s
        if late_s > _TOLERATED_S:
            self.total_s += late_s
