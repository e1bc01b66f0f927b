"""The life of a topology as a table."""

from __future__ import annotations

import enum

from heron.planner.physical_plan import ENDED_STATES, TopologyState

__all__ = ["ENDED", "SHOWN", "STARTING", "TABLE", "LifeEvent", "LifePhase"]


class LifePhase(enum.Enum):
    """`STARTING`: the first physical plan is still to come; `STARTING_PAUSED`: it will be that of a paused topology."""

    STARTING = "starting"
    STARTING_PAUSED = "starting paused"
    RUNNING = "running"
    PAUSED = "paused"
    FINISHED = "finished"
    FAILED = "failed"
    KILLED = "killed"


class LifeEvent(enum.Enum):
    """What moves a topology."""

    PLANNED = enum.auto()
    PAUSED = enum.auto()
    RESUMED = enum.auto()
    FINISHED = enum.auto()
    FAILED = enum.auto()
    KILLED = enum.auto()


STARTING = frozenset((LifePhase.STARTING, LifePhase.STARTING_PAUSED))

TABLE = {
    (LifePhase.STARTING, LifeEvent.PLANNED): LifePhase.RUNNING,
    (LifePhase.STARTING_PAUSED, LifeEvent.PLANNED): LifePhase.PAUSED,
    (LifePhase.STARTING_PAUSED, LifeEvent.FAILED): LifePhase.FAILED,
    (LifePhase.STARTING_PAUSED, LifeEvent.KILLED): LifePhase.KILLED,
    (LifePhase.STARTING, LifeEvent.FAILED): LifePhase.FAILED,
    (LifePhase.STARTING, LifeEvent.KILLED): LifePhase.KILLED,
    (LifePhase.RUNNING, LifeEvent.PAUSED): LifePhase.PAUSED,
    (LifePhase.RUNNING, LifeEvent.RESUMED): LifePhase.RUNNING,  # a command that is repeated is no error
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
"""What people and plans are told."""

ENDED = frozenset(phase for phase, shown in SHOWN.items() if shown in ENDED_STATES)
