"""The life of a topology as a table, and what a new leader takes over. Pure."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from heron.api.definition import TopologyDefinition
from heron.errors import HeronError
from heron.ipc.documents.status import LeaderStatus, TopologyStatus
from heron.planner.packing_plan import PackingPlan
from heron.planner.physical_plan import ENDED_STATES, PhysicalPlan, TopologyState

__all__ = ["ENDED", "SHOWN", "STARTING", "TABLE", "LifeEvent", "LifePhase", "Takeover", "commanded"]


class LifePhase(enum.Enum):
    """`STARTING`: there is no physical plan yet; `STARTING_PAUSED`: the first plan will be of a paused topology."""

    STARTING = "starting"
    STARTING_PAUSED = "starting paused"
    RUNNING = "running"
    PAUSED = "paused"
    FINISHED = "finished"
    FAILED = "failed"
    KILLED = "killed"


class LifeEvent(enum.Enum):
    """An event that changes the phase."""

    PLANNED = enum.auto()
    PAUSED = enum.auto()
    RESUMED = enum.auto()
    FINISHED = enum.auto()
    FAILED = enum.auto()
    KILLED = enum.auto()


_COMMANDS = {"running": LifeEvent.RESUMED, "paused": LifeEvent.PAUSED, "killed": LifeEvent.KILLED}


def commanded(state: str) -> LifeEvent:
    """The event by which a command requests a state: ``running``, ``paused`` or ``killed``.

    Raises:
        HeronError: when it is another state.
    """
    event = _COMMANDS.get(state)
    if event is None:
        msg = f"state {state!r} cannot be requested; known: {', '.join(map(repr, sorted(_COMMANDS)))}"
        raise HeronError(msg)
    return event


STARTING = frozenset((LifePhase.STARTING, LifePhase.STARTING_PAUSED))

TABLE = {
    (LifePhase.STARTING, LifeEvent.PLANNED): LifePhase.RUNNING,
    (LifePhase.STARTING_PAUSED, LifeEvent.PLANNED): LifePhase.PAUSED,
    (LifePhase.STARTING_PAUSED, LifeEvent.FAILED): LifePhase.FAILED,
    (LifePhase.STARTING_PAUSED, LifeEvent.KILLED): LifePhase.KILLED,
    (LifePhase.STARTING, LifeEvent.FAILED): LifePhase.FAILED,
    (LifePhase.STARTING, LifeEvent.KILLED): LifePhase.KILLED,
    (LifePhase.RUNNING, LifeEvent.PAUSED): LifePhase.PAUSED,
    (LifePhase.RUNNING, LifeEvent.RESUMED): LifePhase.RUNNING,  # a repeated command is not an error
    (LifePhase.RUNNING, LifeEvent.FINISHED): LifePhase.FINISHED,
    (LifePhase.RUNNING, LifeEvent.FAILED): LifePhase.FAILED,
    (LifePhase.RUNNING, LifeEvent.KILLED): LifePhase.KILLED,
    (LifePhase.PAUSED, LifeEvent.PAUSED): LifePhase.PAUSED,
    (LifePhase.PAUSED, LifeEvent.RESUMED): LifePhase.RUNNING,
    (LifePhase.PAUSED, LifeEvent.FINISHED): LifePhase.FINISHED,
    (LifePhase.PAUSED, LifeEvent.FAILED): LifePhase.FAILED,
    (LifePhase.PAUSED, LifeEvent.KILLED): LifePhase.KILLED,
}

SHOWN = {
    LifePhase.STARTING: TopologyState.RUNNING,
    LifePhase.STARTING_PAUSED: TopologyState.PAUSED,
    LifePhase.RUNNING: TopologyState.RUNNING,
    LifePhase.PAUSED: TopologyState.PAUSED,
    LifePhase.FINISHED: TopologyState.FINISHED,
    LifePhase.FAILED: TopologyState.FAILED,
    LifePhase.KILLED: TopologyState.KILLED,
}
"""The state in the status and in plans."""

ENDED = frozenset(phase for phase, shown in SHOWN.items() if shown in ENDED_STATES)


@dataclass(frozen=True, slots=True)
class Takeover:
    """What a leader starts from: the submitted topology, and what the former leader left, if there was one.

    `leader` is the new leader. `former_epoch` is the epoch of the former one, 0 for the first leader. `plan` is the
    newest plan, which now belongs to the new leader. `report` is that of a topology that is over. `deactivated` says
    how the topology was submitted; later changes are in the plan. `attached`: a command waits for the end. `troubles`
    are the nodes that could not be read.
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
    attached: bool = False
    troubles: tuple[str, ...] = ()

    def first_phase(self) -> LifePhase:
        """The phase according to the report, or else to the plan."""
        if self.report is not None:
            return LifePhase(self.report.state)
        if self.plan is not None:
            return LifePhase(self.plan.state.value)
        return LifePhase.STARTING_PAUSED if self.deactivated else LifePhase.STARTING
