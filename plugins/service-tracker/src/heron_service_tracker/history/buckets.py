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

from heron_service_tracker.history.samples import Sample
from heron_service_tracker.history.series import TASK_COUNTERS, GroupValues, SeriesGroup

__all__ = ["RESOLUTIONS", "Bucket", "OpenBuckets", "Resolution", "resolution_for"]


@dataclass(frozen=True, slots=True)
class Resolution:
    """A length of buckets, for how long they are kept, and whether tasks have them; all in seconds."""

    step_s: int
    kept_s: int
    of_tasks: bool = False


RESOLUTIONS = (Resolution(1, 15 * 60), Resolution(10, 6 * 3600), Resolution(60, 14 * 86400, of_tasks=True))
(_TASK_STEP_S,) = (each.step_s for each in RESOLUTIONS if each.of_tasks)


class Bucket:
    """The sums of the samples of a group in one bucket, for each of its metrics; `most` are the greatest values."""

    __slots__ = ("most", "totals", "weights")

    def __init__(self, metrics: int) -> None:
        self.totals = [0.0] * metrics
        self.weights = [0.0] * metrics
        self.most = [-math.inf] * metrics

    def add(self, totals: GroupValues, weight: float) -> None:
        """Add a sample."""
        for place, total in enumerate(totals):
            if total is not None:
                self.totals[place] += total
                self.weights[place] += weight
                if total > self.most[place] * weight:
                    self.most[place] = total / weight


class OpenBuckets:
    """The buckets that are not written yet, by resolution, start (seconds since 1970) and group of series."""

    def __init__(self) -> None:
        self._open: dict[tuple[int, int], dict[SeriesGroup, Bucket]] = {}

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
            if sample.group.task_id and TASK_COUNTERS.issuperset(sample.group.metrics):
                self._spread(sample, at_s)
                continue
            for buckets in of_tasks if sample.group.task_id else of_components:
                _bucket(buckets, sample.group).add(sample.totals, sample.weight)

    def _spread(self, sample: Sample, at_s: float) -> None:
        """Divide the increments of a task among the buckets of its seconds, because queries add up what they hold.

        They may be of 20 s, so a part of them belongs to the minute before, whose bucket may have been written already.
        """
        end_s, left_s = at_s, sample.weight
        while left_s > 0:
            start_s = (math.ceil(end_s / _TASK_STEP_S) - 1) * _TASK_STEP_S
            part_s = min(left_s, end_s - start_s)
            buckets = self._open.setdefault((_TASK_STEP_S, start_s), {})
            parts = [None if total is None else total * part_s / sample.weight for total in sample.totals]
            _bucket(buckets, sample.group).add(parts, part_s)
            end_s, left_s = start_s, left_s - part_s

    def take(self, now_s: float | None) -> dict[tuple[int, int], dict[SeriesGroup, Bucket]]:
        """Remove and return the buckets that have ended at `now_s`; all of them for None."""
        ended = [key for key in self._open if now_s is None or key[0] + key[1] <= now_s]
        return {key: self._open.pop(key) for key in ended}


def _bucket(buckets: dict[SeriesGroup, Bucket], group: SeriesGroup) -> Bucket:
    if (found := buckets.get(group)) is None:
        found = buckets[group] = Bucket(len(group.metrics))
    return found


def resolution_for(start_s: float, now_s: float, *, of_tasks: bool) -> Resolution:
    """Return the finest resolution that is still kept for a time."""
    for each in RESOLUTIONS:
        if (each.of_tasks or not of_tasks) and start_s >= now_s - each.kept_s:
            return each
    return RESOLUTIONS[-1]
