"""What is known of a topology when it is explained. Frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from heron.ipc.documents.status import TopologyStatus
from heron.spi.scheduler import ContainerStatus
from heron_cli.client import LetterLine
from heron_health_manager.diagnosing.policy_round import Round

__all__ = ["Facts", "PastEvent", "PastGauges"]


@dataclass(frozen=True, slots=True)
class PastEvent:
    """An event of the history: its name, its subject, and the container that reported it, at wall-clock seconds."""

    at_s: float
    name: str
    subject: str
    container_id: int = 0
    attributes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PastGauges:
    """The gauges that a process has reported at a moment (wall-clock seconds), by name."""

    at_s: float
    container_id: int
    process: str
    incarnation: int
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Facts:
    """A topology now, or at its end; only what happened since `since_s` (wall clock) is explained.

    `status` is the present status, or the last report if the topology does not run any more; None if neither is left.
    `events` is the whole history, oldest first; None if there is none here. `gauges` are those before the ends of
    processes. `found` is a round of a health policy, None without one. `unknown` names what could not be found out.
    `letters` are the dead letters in the files of this machine, the oldest first. `failing` has the tuples that failed
    while the topology was observed, by the component that failed them. `containers` are those of the scheduler.
    """

    topology: str
    now_s: float
    since_s: float
    running: bool = True
    status: TopologyStatus | None = None
    events: tuple[PastEvent, ...] | None = None
    gauges: tuple[PastGauges, ...] = ()
    found: Round | None = None
    observed_s: float = 0.0
    unknown: tuple[str, ...] = ()
    letters: tuple[LetterLine, ...] = ()
    failing: Mapping[str, int] = field(default_factory=dict)
    containers: tuple[ContainerStatus, ...] = ()
