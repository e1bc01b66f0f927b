"""When the tuples of a replay are due. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from heron.errors import UsageError

__all__ = ["ArrivalTimes", "parse_speed", "task_partitions"]

_SPEED = re.compile(r"(\d+(?:\.\d+)?)x?")


@dataclass(frozen=True, slots=True)
class ArrivalTimes:
    """The arrivals at one task. Exactly one of `speed` (of the times of the file) and `rate` (tuples/s) is above 0, or
    neither: then the system is closed, and a tuple is due when there is room for it.
    """

    speed: float = 1.0
    rate: float = 0.0

    @property
    def is_closed(self) -> bool:
        """Whether tuples wait for those before them."""
        return not self.speed and not self.rate

    def due_s(self, number: int, due_us: int) -> float:
        """Return when tuple `number` (from 0) is due, in seconds after the begin; `due_us` is its time in the file."""
        if self.rate:
            return number / self.rate
        return due_us / 1e6 / self.speed if self.speed else 0.0

    def mean_rate(self, tuples: int, seconds: float) -> float:
        """Return the tuples/s of this task on average, if it has so many of a capture that lasted some seconds."""
        return self.rate or (tuples / seconds * self.speed if seconds else 0.0)


def parse_speed(text: str) -> float:
    """Return the factor of ``2x`` or ``0.5``.

    Raises:
        UsageError: when it is none, or 0.
    """
    match = _SPEED.fullmatch(text)
    speed = float(match[1]) if match else 0.0
    if not speed:
        msg = f"--speed {text!r:.40} is no factor above 0; give one such as 2x or 0.5x"
        raise UsageError(msg)
    return speed


def task_partitions(partitions: int, index: int, parallelism: int) -> range:
    """Return the partitions that a task of a replay has: each belongs to one task."""
    return range(index, partitions, parallelism)
