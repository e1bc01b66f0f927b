"""How much a queue of an instance may hold: what leaves it in a target time. Pure.

A slow task would else hold a whole window of the link, which may be minutes of its work: tuples that expire while they
wait, and are lost with the process. What left the queue in a period, and whether it ran dry, is enough to know.

- It never ran dry: what left is the pace, and the capacity goes half of the way to what that pace makes of the target.
- It ran dry: who fills it was slower, or was held up by the capacity. It doubles, so that a task that has recovered has
  all of it back within a few periods.

The capacity is between the least and the most that are configured, and holds two of the largest batches seen lately, up
to the most: one in work and one to go on with.
"""

from __future__ import annotations

__all__ = ["PERIOD_S", "QueueCapacity"]

PERIOD_S = 0.1
"""A capacity is set anew so often: seldom enough to cost nothing, and ten times in the second of a recovery."""

_MOST_DOUBLINGS = 32.0  # after a long silence


class QueueCapacity:
    """The capacity of one queue, in bytes."""

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

    def adapt(self, left_bytes: int, elapsed_s: float, *, ran_dry: bool, largest_bytes: int) -> None:
        """A period is over, in which so much left the queue.

        Args:
            left_bytes: in the period.
            elapsed_s: how long it was; above 0.
            ran_dry: whether the queue was empty at any time in it.
            largest_bytes: the largest batch that came or left in it; 0 when there was none.
        """
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
