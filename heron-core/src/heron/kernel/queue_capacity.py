"""How many bytes a queue may hold, so that what waits in it leaves within a target time. Pure.

Without this bound a slow task would have a whole window of the link in front of it, which may be minutes of its work:
tuples would expire while they wait, and a checkpoint would wait behind them. Two measurements of a period suffice:

- The queue never ran dry: the bytes that left it are the pace. The capacity moves half of the way to pace times target.
- The queue ran dry: its producer was slower, or the capacity held the producer up. The capacity doubles, so that a task
  that has recovered has all of it back within a few periods.

The capacity stays between the configured least and most. It also holds two of the largest recent batches, up to the
most: one in work and one to continue with.
"""

from __future__ import annotations

__all__ = ["PERIOD_S", "QueueCapacity"]

PERIOD_S = 0.1
"""The period of a capacity: long enough to cost nothing, and ten adaptations in the second of a recovery."""

_MOST_DOUBLINGS = 32.0  # after a long silence


class QueueCapacity:
    """The capacity of one queue, in bytes. Pure."""

    __slots__ = ("_exact", "_largest_bytes", "least_bytes", "most_bytes", "target_s")

    def __init__(self, least_bytes: int, most_bytes: int, target_s: float) -> None:
        self.least_bytes = min(least_bytes, most_bytes)
        self.most_bytes = most_bytes
        self.target_s = target_s
        self._largest_bytes = 0
        self._exact = float(self.least_bytes)

    @property
    def current_bytes(self) -> int:
        """The capacity now."""
        return int(self._exact)

    def widen(self) -> None:
        """Sets the most: nothing is known of the pace yet, and a low capacity would hold it up."""
        self._exact = float(self.most_bytes)

    def adapt(self, left_bytes: int, elapsed_s: float, *, ran_dry: bool, largest_bytes: int) -> None:
        """Sets the capacity at the end of a period.

        Args:
            left_bytes: bytes that left the queue in the period.
            elapsed_s: the length of the period; above 0.
            ran_dry: whether the queue was empty at any time in the period.
            largest_bytes: the largest batch that came or left in the period; 0 without a batch.
        """
        if ran_dry and not largest_bytes and self._exact == self.most_bytes:
            return  # the task is idle, as most tasks are most of the time
        periods = elapsed_s / PERIOD_S
        if ran_dry:
            self._exact *= 2.0 ** min(periods, _MOST_DOUBLINGS)
        else:
            goal = left_bytes / elapsed_s * self.target_s
            self._exact = goal + (self._exact - goal) * 0.5**periods
        if largest_bytes:
            self._largest_bytes = max(largest_bytes, self._largest_bytes // 2)  # a single giant is forgotten soon
        least_bytes = max(self.least_bytes, 2 * self._largest_bytes)
        self._exact = float(min(self.most_bytes, max(least_bytes, self._exact)))
