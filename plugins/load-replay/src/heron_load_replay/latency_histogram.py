"""Times in buckets whose width is less than a hundredth of their value. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

__all__ = ["LatencyHistogram"]

_BITS = 7  # of a value that a bucket keeps: an error below 1/128
_FULL = 1 << _BITS


class LatencyHistogram:
    """Counts of times in microseconds, by bucket."""

    __slots__ = ("buckets", "most_us")

    def __init__(self, buckets: Mapping[int, int] | None = None, most_us: int = 0) -> None:
        self.buckets = Counter(buckets or {})
        self.most_us = most_us

    def add(self, time_s: float) -> None:
        """Count a time; one below 0 counts as 0."""
        time_us = max(0, int(time_s * 1e6))
        shift = max(0, time_us.bit_length() - _BITS - 1)
        self.buckets[(shift << _BITS) + (time_us >> shift)] += 1
        self.most_us = max(self.most_us, time_us)

    def merge(self, other: LatencyHistogram) -> None:
        """Count all times of another one."""
        self.buckets.update(other.buckets)
        self.most_us = max(self.most_us, other.most_us)

    @property
    def count(self) -> int:
        """How many times it has."""
        return self.buckets.total()

    def percentile_s(self, percent: float) -> float | None:
        """Return the time that so many percent do not exceed, in seconds; None without times."""
        wanted = self.count * percent / 100
        passed = 0
        for bucket, number in sorted(self.buckets.items()):
            passed += number
            if passed >= wanted:
                return min(_highest_us(bucket), self.most_us) / 1e6
        return None


def _highest_us(bucket: int) -> int:
    shift = max(0, (bucket >> _BITS) - 1)
    return ((bucket - (shift << _BITS) + 1) << shift) - 1
