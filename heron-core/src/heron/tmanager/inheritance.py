"""What a leader begins with."""

from __future__ import annotations

from dataclasses import dataclass

from heron.api.definition import TopologyDefinition
from heron.ipc.status import LeaderStatus, TopologyStatus
from heron.planner.packing_plan import PackingPlan
from heron.planner.physical_plan import PhysicalPlan
from heron.tmanager.topology_state import LifePhase

__all__ = ["Inheritance"]


@dataclass(frozen=True, slots=True)
class Inheritance:
    """The submitted topology, who leads, and what a former leader has left, if there was one.

    `former_epoch` is that of the leader before, 0 where this is the first; `plan` the newest one, which is this
    leader's from now on; `report` that of a topology that is over. `deactivated`: it was submitted so; what became of
    that since stands in the plan. `troubles` are what of all this could not be read, and what follows from that.
    """

    definition: TopologyDefinition
    packing: PackingPlan
    topology_id: str
    leader: LeaderStatus
    started_at_s: float
    former_epoch: int = 0
    plan: PhysicalPlan | None = None
    report: TopologyStatus | None = None
    deactivated: bool = False
    troubles: tuple[str, ...] = ()

    def first_phase(self) -> LifePhase:
        """Where the topology is in its life: as the report says, or else the plan."""
        if self.report is not None:
            return LifePhase(self.report.state)
        if self.plan is not None:
            return LifePhase(self.plan.state.value)
        return LifePhase.STARTING_PAUSED if self.deactivated else LifePhase.STARTING
