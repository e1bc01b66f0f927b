"""Where a topology runs, as its scheduler has noted it beside the copy of the execution state, for other machines."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from heron.errors import StateError
from heron.spi.statemgr import NodeKind, StateManager

__all__ = ["JobPlace", "read_place"]


@dataclass(frozen=True, slots=True)
class JobPlace:
    """What the scheduler calls the job of a run ("": it has not said), and pages that show it, by title."""

    topology_id: str = ""
    handle: str = ""
    links: dict[str, str] = field(default_factory=dict)


def read_place(statemgr: StateManager, topology: str, topology_id: str) -> JobPlace:
    """The place of that run; empty when none is noted, or it cannot be read."""
    try:
        node = statemgr.get(NodeKind.SCHEDULER_LOCATION, topology)
        place = msgspec.json.decode(node.value, type=JobPlace) if node else JobPlace()
    except (StateError, msgspec.MsgspecError, UnicodeDecodeError):
        return JobPlace()
    return place if place.topology_id == topology_id else JobPlace()
