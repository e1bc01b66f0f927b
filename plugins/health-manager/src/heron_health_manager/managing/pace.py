"""How often a topology is observed: seldom where its size would cost too much time of a processor. Pure."""

from __future__ import annotations

__all__ = ["Pace"]

_MOST_SHARE = 0.04  # of one processor
_NEW = 0.3  # how much the newest round says about the next one


class Pace:
    """The seconds from one observation to the next: `period_s`, at least `shortest_s`.

    With thousands of tasks a round takes seconds of a processor. Then the rounds are as far apart as the share needs.
    The pace follows a round that took longer at once, and one that took less slowly.
    """

    def __init__(self, shortest_s: float) -> None:
        self._shortest_s = shortest_s
        self._usual_s = 0.0
        self.period_s = shortest_s

    def took(self, cpu_s: float) -> None:
        """Note the processor time of a round."""
        self._usual_s = max(cpu_s, self._usual_s + _NEW * (cpu_s - self._usual_s))
        self.period_s = max(self._shortest_s, self._usual_s / _MOST_SHARE)
