"""`topology.component.output.bps`: how many bytes a second a task may send.

A bucket of bytes fills at that pace, up to 1.5 s worth of it (as in Heron), and each frame takes its size out. A frame
goes when the bucket is not overdrawn, so that one that is larger than the bucket goes too, and is paid for afterwards:
over time the pace is exact, whatever the size of frames.
"""

from __future__ import annotations

from collections.abc import Callable

from heron.clock import monotonic_s

__all__ = ["OutputLimit"]

_BURST_S = 1.5
_BATCH_S = 0.1  # a batch larger than what may be sent in this time would make the output lumpy
_LEAST_BATCH_BYTES = 1024
_SHORTEST_WAIT_S = 0.001


class OutputLimit:
    """The bucket of one task. The gateway sends by it; the task thread reads how long it held data back."""

    def __init__(self, bytes_per_s: float, clock: Callable[[], float] = monotonic_s) -> None:
        self._clock = clock
        self._bytes_per_s = bytes_per_s
        self._level = 0.0
        self._filled_s = clock()
        self._held_since_s: float | None = None
        self._held_s = 0.0

    @property
    def batch_bytes(self) -> int:
        """The size of batches that makes the output even."""
        return max(_LEAST_BATCH_BYTES, int(self._bytes_per_s * _BATCH_S))

    def set_pace(self, bytes_per_s: float) -> None:
        """The pace from now on: another plan may divide it among other tasks."""
        self._bytes_per_s = bytes_per_s

    def allows(self) -> bool:
        """Whether a frame may go now; when not, the time until one may is counted as held."""
        now_s = self._clock()
        filled = self._level + (now_s - self._filled_s) * self._bytes_per_s
        self._level = min(filled, _BURST_S * self._bytes_per_s)
        self._filled_s = now_s
        if self._level < 0:
            if self._held_since_s is None:
                self._held_since_s = now_s
            return False
        self.idle()
        return True

    def idle(self) -> None:
        """Nothing waits for this limit: there is no data, or it has no credit."""
        if self._held_since_s is not None:
            self._held_s += self._clock() - self._held_since_s
            self._held_since_s = None

    def spend(self, size_bytes: int) -> None:
        """A frame of this size was sent."""
        self._level -= size_bytes

    def wait_s(self) -> float | None:
        """How long until a frame that was held back may go; None when none was."""
        if self._held_since_s is None:
            return None
        return max(_SHORTEST_WAIT_S, -self._level / self._bytes_per_s)

    def held_s(self) -> float:
        """How long data has waited for this limit, in all."""
        since_s = self._held_since_s
        return self._held_s + (self._clock() - since_s if since_s is not None else 0.0)
