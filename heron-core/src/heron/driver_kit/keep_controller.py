"""The share of the offered tuples that a spout keeps. Pure: measurements in, a share out, once per period.

The rate controller divides its target by the measured offer. The latency controller is the proportional integral
controller of RFC 8033 (PIE), which sets the share that is shed from the delay and its change. There the target is
always 15 ms; here the gains are scaled by the target, so that its damping is the same for each target.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

__all__ = ["PERIOD_S", "KeepController", "LatencyController", "Offer", "RateController"]

PERIOD_S = 0.1
"""How often the share is computed; a change ends a batch."""

_LEAST_SHARE = 0.001
_STEADY = 0.05  # a share that differs less from the present one changes nothing

_OFFER_S = 1.0  # the time in which the measured offer follows a change
_INTEGRAL = 0.125
_PROPORTIONAL = 0.5
_MOST_DELAY = 3.0  # targets; a longer delay says no more, and the share must be able to return


@dataclass(frozen=True, slots=True)
class Offer:
    """What a period has brought: the tuples that were emitted or shed, its length, and the delay at its end."""

    tuples: int
    elapsed_s: float
    delay_s: float = 0.0


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
        self._offered_per_s: float | None = None

    def _wanted(self, offer: Offer) -> float:
        now_per_s = offer.tuples / offer.elapsed_s
        if self._offered_per_s is None:
            self._offered_per_s = now_per_s
        self._offered_per_s += (now_per_s - self._offered_per_s) * -math.expm1(-offer.elapsed_s / _OFFER_S)
        return self._per_s / self._offered_per_s if self._offered_per_s > self._per_s else 1.0


class LatencyController(KeepController):
    """Keeps as much as lets a tuple wait for `target_s`."""

    def __init__(self, target_s: float) -> None:
        super().__init__()
        self._target_s = target_s
        self._shed = 0.0
        self._before = 0.0

    def _wanted(self, offer: Offer) -> float:
        delay = min(offer.delay_s / self._target_s, _MOST_DELAY)  # in targets
        change = _INTEGRAL * (delay - 1.0) * offer.elapsed_s / self._target_s + _PROPORTIONAL * (delay - self._before)
        self._before = delay
        self._shed = min(1.0 - _LEAST_SHARE, max(0.0, self._shed + change * self._room()))
        return 1.0 - self._shed

    def _room(self) -> float:
        """Slows changes where they would be large for what is left, as RFC 8033 does near 0: here near 1, too."""
        return max(0.02, 1.0 - self._shed)
