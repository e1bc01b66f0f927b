"""Which containers have a standby topology manager. Pure."""

from __future__ import annotations

from heron.api.api_constants import TOPOLOGY_TMANAGER_STANDBYS
from heron.errors import UsageError
from heron.planner.packing_plan import PackingPlan

__all__ = ["check_standbys", "standby_containers"]


def standby_containers(packing: PackingPlan, standbys: int) -> tuple[int, ...]:
    """The first so many containers other than 0, which has a topology manager in any case."""
    return tuple(sorted(container.container_id for container in packing.containers)[:standbys])


def check_standbys(topology: str, packing: PackingPlan, standbys: int) -> None:
    """Refuses more standbys than there are containers for them: two in one would end together.

    Raises:
        UsageError: when there are more; names key, value, limit and remedy.
    """
    limit = len(packing.containers)
    if standbys > limit:
        have = f"{limit} container{'' if limit == 1 else 's'}"
        msg = (
            f"topology {topology!r}: {TOPOLOGY_TMANAGER_STANDBYS}: {standbys} standby topology managers need as many "
            f"containers besides container 0, and the packing plan has {have}; set it to {limit} at most, or use more "
            "containers"
        )
        raise UsageError(msg)
