"""What the Yahoo streaming benchmark counts in one block of events: a recount without windows of an engine."""

from __future__ import annotations

import importlib
import sys
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache

from bench.trial import TOPOLOGIES

__all__ = ["Place", "recount"]

Place = tuple[int, str]
"""The number of a window in its block, and a campaign."""


@lru_cache(maxsize=1)
def recount() -> Mapping[Place, int]:
    """Return the views of each campaign in each window of the block."""
    if str(TOPOLOGIES) not in sys.path:
        sys.path.insert(0, str(TOPOLOGIES))
    ads, replay = importlib.import_module("ad_events"), importlib.import_module("replay")
    counts: Counter[Place] = Counter()
    for number in range(replay.BLOCK):
        event = ads.event(number)
        if event.event_type == "view":
            counts[number // (10 * replay.PER_S), ads.CAMPAIGNS[event.ad]] += 1
    return counts
