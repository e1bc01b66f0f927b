"""Which physical plan follows from who has registered. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from heron.api.definition import TopologyDefinition
from heron.planner.assemble import physical_plan
from heron.planner.packing_plan import PackingPlan
from heron.planner.physical_plan import PhysicalPlan, StreamManagerLocation, TopologyState

__all__ = ["Assignment"]


class Assignment:
    """Makes the plans of one leader."""

    def __init__(self, definition: TopologyDefinition, packing: PackingPlan, topology_id: str, epoch: int) -> None:
        self._definition = definition
        self._packing = packing
        self._topology_id = topology_id
        self._epoch = epoch

    def inherited(self, plan: PhysicalPlan) -> PhysicalPlan:
        """A former leader's plan as this one's: same version, so that nobody switches without a reason."""
        return replace(plan, epoch=self._epoch)

    def next_plan(
        self,
        current: PhysicalPlan | None,
        registered: Mapping[int, StreamManagerLocation],
        state: TopologyState,
    ) -> PhysicalPlan | None:
        """The plan for who is there now: `current` itself when nothing changes, None while a container is missing.

        A stream manager that has not registered with this leader yet counts as where the current plan has it.
        """
        located = {stmgr.container_id: stmgr for stmgr in current.stmgrs} if current else {}
        located.update(registered)
        wanted = {container.container_id for container in self._packing.containers}
        if not wanted <= located.keys():
            return None
        candidate = physical_plan(
            self._packing,
            self._definition,
            [located[container_id] for container_id in wanted],
            version=current.version if current else 0,
            epoch=self._epoch,
            topology_id=self._topology_id,
            state=state,
        )
        if candidate == current:
            return current
        return replace(candidate, version=candidate.version + 1)
