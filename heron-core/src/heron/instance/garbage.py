"""When Python looks for cycles, and how long the tuple path stands still meanwhile."""

from __future__ import annotations

import gc
from collections.abc import Callable

from heron.clock import monotonic_s
from heron.instance.task_metrics import LatencyHistogram
from heron.ipc.metric_names import GC_COLLECTION_COUNT, GC_COLLECTION_TIME
from heron.spi.metricsink import Metric, MetricKind

__all__ = ["THRESHOLDS", "GarbagePauses", "collect_less", "freeze_start_up"]

THRESHOLDS = (50_000, 10, 10)
"""Objects that survive before the youngest are looked at, and how often before the next older ones are.

Measured on a million tuples: at 700, the default, a spout spends 15 % of its time in 900 collections that find nothing,
as a batch of rows is alive until its flush; from 10,000 on there is none, whatever the number of destinations. A bolt
that keeps every tuple pauses 0.75 s in all at 700, 0.2 s at 10,000, 0.16 s at 50,000; one that makes a cycle of each
then waits 10 ms for a collection, and 23 ms at 100,000. So 50,000: room for what authors hold, and short pauses.
"""

_GENERATIONS = 3


def freeze_start_up() -> None:
    """What start-up made stays, the author's `initialize` included: collections need not look at it again."""
    gc.collect()
    gc.freeze()


def collect_less() -> None:
    """Called before the author's file is loaded, which makes many objects that stay."""
    gc.set_threshold(*THRESHOLDS)


class GarbagePauses:
    """Counts collections and their time. Called back by the interpreter: it costs nothing between collections."""

    def __init__(self, clock: Callable[[], float] = monotonic_s) -> None:
        self._clock = clock
        self._since_s = 0.0
        self._counts = [0] * _GENERATIONS
        self._pauses = LatencyHistogram()

    def watch(self) -> None:
        """Begins to count, until `close`."""
        gc.callbacks.append(self._note)

    def close(self) -> None:
        """Counts no more."""
        gc.callbacks.remove(self._note)

    def metrics(self) -> list[Metric]:
        """The totals so far."""
        counts = [
            Metric(GC_COLLECTION_COUNT, MetricKind.COUNTER, "collections", count, {"generation": str(generation)})
            for generation, count in enumerate(self._counts)
        ]
        return [*counts, Metric(GC_COLLECTION_TIME, MetricKind.HISTOGRAM, "s", self._pauses.value())]

    def _note(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":  # one collection at a time, whichever thread it is on
            self._since_s = self._clock()
        else:
            self._counts[info["generation"]] += 1
            self._pauses.add(self._clock() - self._since_s)
