"""Samples summed up by time, at three resolutions. Pure.

| resolution | kept for | of |
|---|---|---|
| 1 s | 15 minutes | components |
| 10 s | 6 hours | components |
| 60 s | 14 days | components and tasks |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from heron_service_tracker.history.samples import Sample, Series

__all__ = ["RESOLUTIONS", "Bucket", "OpenBuckets", "Resolution", "resolution_for"]


@dataclass(frozen=True, slots=True)
class Resolution:
    """A length of buckets, for how long they are kept, and whether tasks have them; all in seconds."""

    step_s: int
    kept_s: int
    of_tasks: bool = False


RESOLUTIONS = (Resolution(1, 15 * 60), Resolution(10, 6 * 3600), Resolution(60, 14 * 86400, of_tasks=True))


@dataclass(slots=True)
class Bucket:
    """The sums of the samples of a series in one bucket; `most` is the greatest value of a sample."""

    total: float = 0.0
    weight: float = 0.0
    most: float = 0.0

    def add(self, total: float, weight: float) -> None:
        """Add a sample."""
        self.total += total
        self.weight += weight
        if total > self.most * weight:
            self.most = total / weight


class OpenBuckets:
    """The buckets that are not written yet, by resolution, start (seconds since 1970) and series."""

    def __init__(self) -> None:
        self._open: dict[tuple[int, int], dict[Series, Bucket]] = {}

    def add(self, samples: Sequence[Sample], at_s: float) -> None:
        """Add the samples of one moment to a bucket of each resolution."""
        if not samples:
            return
        of_components, of_tasks = [], []
        for each in RESOLUTIONS:
            buckets = self._open.setdefault((each.step_s, int(at_s) // each.step_s * each.step_s), {})
            of_components.append(buckets)
            if each.of_tasks:
                of_tasks.append(buckets)
        for series, total, weight in samples:
            for buckets in of_tasks if series.task_id else of_components:
                if (found := buckets.get(series)) is None:
                    found = buckets[series] = Bucket()
                found.add(total, weight)

    def take(self, now_s: float | None) -> dict[tuple[int, int], dict[Series, Bucket]]:
        """Remove and return the buckets that have ended at `now_s`; all of them for None."""
        ended = [key for key in self._open if now_s is None or key[0] + key[1] <= now_s]
        return {key: self._open.pop(key) for key in ended}


def resolution_for(start_s: float, now_s: float, *, of_tasks: bool) -> Resolution:
    """Return the finest resolution that is still kept for a time."""
    for each in RESOLUTIONS:
        if (each.of_tasks or not of_tasks) and start_s >= now_s - each.kept_s:
            return each
    return RESOLUTIONS[-1]
