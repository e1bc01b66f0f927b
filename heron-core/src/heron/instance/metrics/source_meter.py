"""What is offered to a spout task, and how long a tuple waits that arrives now, as far as the task can tell. Pure.

The wait has two parts. The first is what waits at the source, by the rate at which it arrives or is emitted. The second
is what is in flight in the topology, by the rate at which roots end (Little's law, as in the departure rates of RFC
8033). Both say what a tuple will wait; the time of trees that have ended says it too late by this time.
"""

from __future__ import annotations

from dataclasses import dataclass

from heron.driver_kit.keep_controller import Offer, SmoothedRate

__all__ = ["SourceCounts", "SourceMeter"]

_WAITING_SHARE = 0.05
"""Without a backlog: a spout that waits for this share of its time counts as at its target."""
_MOST_TARGETS = 1.25  # of that measure, which is not proportional to a delay

_MOST_GROWTH = 4.0
"""A predicted wait is at most this many times what trees have taken: a burst of which no tree has ended is no queue."""


@dataclass(frozen=True, slots=True)
class SourceCounts:
    """Totals of a spout task at the end of a period.

    Tuples that were kept and shed, roots in flight, roots that have ended and the seconds that they took, and the
    seconds in which the spout was held up. `backlog` is what waits at the source; None: unknown.
    """

    kept: int = 0
    shed: int = 0
    in_flight: int = 0
    ended: int = 0
    ended_s: float = 0.0
    held_up_s: float = 0.0
    backlog: float | None = None


class SourceMeter:
    """Compares the totals of each period with those of the last one; the first period begins with `before`."""

    def __init__(self, before: SourceCounts) -> None:
        self._before = before
        self._emitted, self._arrived, self._ended, self._held_up = (SmoothedRate() for _ in range(4))
        self._tree_s = 0.0
        self._since_end_s = 0.0

    def take(self, counts: SourceCounts, elapsed_s: float, target_s: float) -> Offer:
        """The offer of the period that ends now; `target_s` is the delay of a spout that counts as at its target."""
        before, self._before = self._before, counts
        kept = max(0, counts.kept - before.kept)
        emitted = arrived = float(kept + max(0, counts.shed - before.shed))
        held_up = self._held_up.add(counts.held_up_s - before.held_up_s, elapsed_s)
        delay_s = self._in_flight_s(counts, before, elapsed_s)
        if counts.backlog is None:
            delay_s = max(delay_s, target_s * min(held_up / _WAITING_SHARE, _MOST_TARGETS))
        else:
            if before.backlog is not None:
                arrived += counts.backlog - before.backlog
            delay_s += self._at_source_s(counts.backlog, emitted, arrived, elapsed_s)
        left = max(0, kept - (counts.in_flight - before.in_flight))
        return Offer(arrived, elapsed_s, delay_s, left)

    def _at_source_s(self, backlog: float, emitted: float, arrived: float, elapsed_s: float) -> float:
        rate_per_s = max(self._emitted.add(emitted, elapsed_s), self._arrived.add(arrived, elapsed_s))
        return backlog / rate_per_s if rate_per_s > 0 else 0.0

    def _in_flight_s(self, counts: SourceCounts, before: SourceCounts, elapsed_s: float) -> float:
        ended = counts.ended - before.ended
        rate_per_s = self._ended.add(ended, elapsed_s)
        self._since_end_s += elapsed_s
        if ended > 0 or not before.in_flight:
            self._tree_s = (counts.ended_s - before.ended_s) / ended if ended > 0 else 0.0
            self._since_end_s = 0.0
        seen_s = max(self._tree_s, self._since_end_s)
        return min(counts.in_flight / rate_per_s, _MOST_GROWTH * seen_s) if rate_per_s > 0 else seen_s
