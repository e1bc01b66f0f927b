"""The status of a container, from its record and from what the cluster sees of its place. Pure."""

from __future__ import annotations

from heron.spi.scheduler import ContainerStatus
from heron_scheduler_kit.managed.cluster import Observation
from heron_scheduler_kit.managed.container_life import UNSEEN_END
from heron_scheduler_kit.managed.container_records import ContainerPhase, ContainerRecord

__all__ = ["ABSENT", "OVER", "container_status"]

ABSENT = Observation(up=False)
"""A place that the cluster does not have."""

OVER = frozenset({ContainerPhase.ENDED, ContainerPhase.REMOVED})
"""The phases of containers that never start again."""

_NOT_BEGUN = "its launcher has not begun; if that lasts, `heron logs` shows why"


def container_status(container_id: int, record: ContainerRecord | None, place: Observation) -> ContainerStatus:
    """Return the status of a container.

    The cluster's reason is shown while the place does not run, and when only the cluster saw the last end.
    """
    known = record or ContainerRecord("", "", container_id)
    running = known.phase is ContainerPhase.RUNNING and place.up
    reasons = [place.reason if place.reason and known.error == UNSEEN_END else known.error]
    if known.phase not in OVER and not running:
        reasons.append(place.reason)
        if place.up and not known.attempts:
            reasons.append(_NOT_BEGUN)
    return ContainerStatus(
        container_id,
        running,
        known.attempts,
        "; ".join(dict.fromkeys(each for each in reasons if each)),
        place.where or known.host,
        place.host if place.up else "",
    )
