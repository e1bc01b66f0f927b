"""Samples summed up by time, at three resolutions. Pure.

| resolution | kept for | of |
|---|---|---|
| 1 s | 15 minutes | components |
| 10 s | 6 hours | components |
| 60 s | 14 days | components and tasks |
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from heron_service_tracker.history.samples import TASK_COUNTERS, Sample, Series

__all__ = ["RESOLUTIONS", "Bucket", "OpenBuckets", "Resolution", "resolution_for"]


@dataclass(frozen=True, slots=True)
class Resolution:
    """A length of buckets, for how long they are kept, and whether tasks have them; all in seconds."""

    step_s: int
    kept_s: int
    of_tasks: bool = False


RESOLUTIONS = (Resolution(1, 15 * 60), Resolution(10, 6 * 3600), Resolution(60, 14 * 86400, of_tasks=True))
(_TASK_STEP_S,) = (each.step_s for each in RESOLUTIONS if each.of_tasks)


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
        for sample in samples:
            if sample.series.task_id and sample.series.metric in TASK_COUNTERS:
                self._spread(sample, at_s)
                continue
            for buckets in of_tasks if sample.series.task_id else of_components:
                _bucket(buckets, sample.series).add(sample.total, sample.weight)

    def _spread(self, sample: Sample, at_s: float) -> None:
        """Divide the increment of a task among the buckets of its seconds, because queries add up what they hold.

        It may be of 20 s, so a part of it belongs to the minute before, whose bucket may have been written already.
        """
        end_s, left_s = at_s, sample.weight
        while left_s > 0:
            start_s = (math.ceil(end_s / _TASK_STEP_S) - 1) * _TASK_STEP_S
            part_s = min(left_s, end_s - start_s)
            buckets = self._open.setdefault((_TASK_STEP_S, start_s), {})
            _bucket(buckets, sample.series).add(sample.total * part_s / sample.weight, part_s)
            end_s, left_s = start_s, left_s - part_s

    def take(self, now_s: float | None) -> dict[tuple[int, int], dict[Series, Bucket]]:
        """Remove and return the buckets that have ended at `now_s`; all of them for None."""
        ended = [key for key in self._open if now_s is None or key[0] + key[1] <= now_s]
        return {key: self._open.pop(key) for key in ended}


def _bucket(buckets: dict[Series, Bucket], series: Series) -> Bucket:
    if (found := buckets.get(series)) is None:
        found = buckets[series] = Bucket()
    return found


def resolution_for(start_s: float, now_s: float, *, of_tasks: bool) -> Resolution:
    """Return the finest resolution that is still kept for a time."""
    for each in RESOLUTIONS:
        if (each.of_tasks or not of_tasks) and start_s >= now_s - each.kept_s:
            return each
    return RESOLUTIONS[-1]
