"""The share of the offered tuples that a spout keeps. Pure: measurements in, a share out, once per period.

Both controllers divide a rate that may be kept by the measured offer, so a change of the offer needs no ramp. For the
rate controller this rate is given. The latency controller measures at which rate tuples leave the queue, and keeps so
much more or less that the queue reaches its target within the time of a target. It has no state but the measured
rates, so nothing has to be unwound after a stall. Source: Tu, Liu, Prabhakar and Yao, "Load Shedding in Stream
Databases: A Control-Based Approach" (VLDB 2006). That nothing is shed below half of the target is from RFC 8033 (PIE).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

__all__ = ["PERIOD_S", "KeepController", "LatencyController", "Offer", "RateController", "SmoothedRate"]

PERIOD_S = 0.1
"""How often the share is computed; a change ends a batch."""

_LEAST_SHARE = 0.001
_STEADY = 0.05  # a share that differs less from the present one changes nothing

_SMOOTH_S = 1.0  # the time in which a measured rate follows a change
_LONGEST_S = 2 * PERIOD_S  # a period in which the process stood still counts as this long, so that it does not decide
_CALM = 0.5  # targets; below this delay nothing is shed that was not shed before
_EMPTY = 0.05  # targets; below it nothing waits
_LEAST_PART = 0.25  # of the rate that leaves: kept at any delay, as weights would be useless if nearly all was shed


@dataclass(frozen=True, slots=True)
class Offer:
    """What a period has brought, for a controller.

    `tuples` arrived, also those that are shed; `left` have left the queue behind the spout. `delay_s` is that of a
    tuple that arrives at the end of the period. Only the latency controller reads the last two.
    """

    tuples: float
    elapsed_s: float
    delay_s: float = 0.0
    left: float = 0.0


class SmoothedRate:
    """Tuples per second; it follows a change within about a second."""

    def __init__(self) -> None:
        self.per_s = 0.0
        self._measured = False

    def add(self, tuples: float, elapsed_s: float) -> float:
        """Takes the tuples of a period; returns the rate."""
        now_per_s = tuples / elapsed_s
        weight = -math.expm1(-min(elapsed_s, _LONGEST_S) / _SMOOTH_S) if self._measured else 1.0
        self._measured = True
        self.per_s += (now_per_s - self.per_s) * weight
        return self.per_s


class KeepController(ABC):
    """Computes the share; `share` is above 0 and at most 1."""

    def __init__(self) -> None:
        self.share = 1.0

    def follow(self, offer: Offer) -> bool:
        """Takes the measurements of a period; whether the share has changed."""
        wanted = min(1.0, max(_LEAST_SHARE, self._wanted(offer)))
        if wanted == self.share or (wanted < 1.0 and abs(wanted - self.share) < _STEADY * self.share):
            return False
        self.share = wanted
        return True

    @abstractmethod
    def _wanted(self, offer: Offer) -> float:
        """The share that the measurements ask for."""


class RateController(KeepController):
    """Keeps `per_s` tuples per second."""

    def __init__(self, per_s: float) -> None:
        super().__init__()
        self._per_s = per_s
        self._offered = SmoothedRate()

    def _wanted(self, offer: Offer) -> float:
        offered_per_s = self._offered.add(offer.tuples, offer.elapsed_s)
        return self._per_s / offered_per_s if offered_per_s > self._per_s else 1.0


class LatencyController(KeepController):
    """Keeps as much as lets a tuple wait for `target_s`."""

    def __init__(self, target_s: float) -> None:
        super().__init__()
        self._target_s = target_s
        self._offered = SmoothedRate()
        self._left = SmoothedRate()

    def _wanted(self, offer: Offer) -> float:
        offered_per_s = self._offered.add(offer.tuples, offer.elapsed_s)
        left_per_s = self._left.add(offer.left, offer.elapsed_s)
        delay = offer.delay_s / self._target_s
        if offered_per_s <= 0.0 or (self.share == 1.0 and delay < _CALM):
            return self.share
        if offer.tuples <= 0 and delay < _EMPTY:
            return 1.0  # the source is idle: the rates say nothing about what comes next
        wanted = left_per_s * max(_LEAST_PART, 2.0 - delay) / offered_per_s
        if delay < _CALM:  # what leaves is no limit then; it may be nothing, as a small share may contain no key
            wanted = max(wanted, self.share * (1.0 + min(offer.elapsed_s, _LONGEST_S) / _SMOOTH_S))
        return wanted
