"""How long a container that ended waits for its next attempt: 0.1 s, doubling to 10 s, anew after a stable run."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["BackoffLimits", "next_wait_s"]


@dataclass(frozen=True, slots=True)
class BackoffLimits:
    """Seconds: the first wait, the longest one, and how long a run is long enough to begin at the first again."""

    first_s: float
    longest_s: float
    stable_s: float


def next_wait_s(limits: BackoffLimits, last_wait_s: float, ran_s: float) -> float:
    """The wait after a run of `ran_s` seconds that followed a wait of `last_wait_s` (0 before the first run)."""
    if ran_s >= limits.stable_s or last_wait_s <= 0:
        return min(limits.first_s, limits.longest_s)
    return min(2 * last_wait_s, limits.longest_s)
