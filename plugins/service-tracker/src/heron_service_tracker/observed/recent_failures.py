"""How many tuples of each component have failed in the last minutes, from one status after the other. Pure.

The counts in a status are those since the start, so a single failure would be a trouble for ever.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Final

from heron_cli.client import TopologyStatus

__all__ = ["RECENT_MINUTES", "Failures", "failures_after", "recently_failed"]

RECENT_MINUTES: Final = 5

Failures = Mapping[tuple[str, int], int]
"""Numbers of tuples by component and minute of the monotonic clock."""


def failures_after(
    failures: Failures, before: TopologyStatus | None, now: TopologyStatus, now_s: float
) -> dict[tuple[str, int], int]:
    """Return the failures of the last minutes after another status, which was read now (monotonic seconds).

    Counts of another run or leader are no increase, and neither are those with another task in them.
    """
    minute = int(now_s // 60)
    kept = {key: number for key, number in failures.items() if key[1] > minute - RECENT_MINUTES}
    if before is None or (before.topology_id, _epoch(before)) != (now.topology_id, _epoch(now)):
        return kept
    formers = {each.name: each for each in before.components}
    for each in now.components:
        former = formers.get(each.name, each)
        if each.failed > former.failed and each.reported_tasks <= former.reported_tasks:
            key = each.name, minute
            kept[key] = kept.get(key, 0) + each.failed - former.failed
    return kept


def recently_failed(failures: Failures) -> dict[str, int]:
    """Return the numbers by component."""
    found: defaultdict[str, int] = defaultdict(int)
    for (component, _), number in failures.items():
        found[component] += number
    return dict(found)


def _epoch(status: TopologyStatus) -> int:
    return status.leader.epoch if status.leader else 0
