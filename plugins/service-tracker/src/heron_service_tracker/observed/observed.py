"""What the tracker knows: frozen values, each with the time at which it was true.

A watch replaces a value as a whole, so a request never sees half of a change. Times `*_at_s` are wall-clock seconds,
except `observed_at_s`, `metrics_at_s` and `figures_at_s`, which are monotonic and give the age of an answer.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from heron.spi.scheduler import JobLink
from heron_cli.client import HealthRecords, MetricsRow, TopologyEntry, TopologyPlans, TopologyStatus
from heron_service_tracker.observed.flow_items import FlowEdge, FlowNode, TaskRow
from heron_service_tracker.observed.recent_failures import Failures
from heron_service_tracker.observed.recent_memory import RecentMemory
from heron_service_tracker.observed.seen_checkpoints import SeenCheckpoints
from heron_service_tracker.observed.task_figures import FiguresOfTasks

__all__ = [
    "EVENTS_KEPT",
    "LIVE_STATES",
    "VERSIONS_KEPT",
    "MadeAnswers",
    "ObservedCluster",
    "ObservedEvent",
    "ObservedTopology",
    "ObservedVersion",
    "age_s",
]

LIVE_STATES = frozenset({"starting", "running", "paused", "changing"})
"""The states of topologies whose topology managers are asked."""

EVENTS_KEPT = 1000
"""Events of one topology in memory; a topology that restarts for ever must not fill it."""

VERSIONS_KEPT = 50
"""Versions of the plans of one topology in memory."""


@dataclass(frozen=True, slots=True)
class ObservedEvent:
    """A change that the tracker saw; `number` grows by one with each event of the topology."""

    number: int
    at_s: float
    kind: str
    subject: str
    text: str


@dataclass(frozen=True, slots=True)
class ObservedVersion:
    """A version of the plans that the tracker read, and how it differs from the one that it read before."""

    version: int
    epoch: int
    packing: str
    state: str
    at_s: float
    changes: tuple[str, ...] = ()


@dataclass(slots=True)
class MadeAnswers:
    """What was made of one value of a topology, for the requests after the first; None where nothing was."""

    tasks: tuple[TaskRow, ...] | None = None
    flow: tuple[tuple[FlowNode, ...], tuple[FlowEdge, ...]] | None = None

    def take(self, other: MadeAnswers) -> None:
        """Take what was made of equal values."""
        self.tasks, self.flow = other.tasks, other.flow


@dataclass(frozen=True, slots=True)
class ObservedTopology:
    """One topology of a cluster.

    `status`, `metrics`, `figures` and `plans` are the newest that were read, and stay when reading fails; `error` says
    then why. `observed_at_s` is the time of the status. `metrics_at_s` is that of the metrics, which are read only
    while somebody looks at them. `figures_at_s` is that of the figures, which are made of them or of a part of them.
    `failures` are the tuples that have failed in the last minutes, and `memory` is what its tasks needed then.
    `checkpoints` are those that were seen.
    `made` is kept with the value: a value that replaces it begins with nothing made.
    `health` are the decisions of its health manager, None before they were read. `links` are pages of its scheduler.
    """

    cluster: str
    entry: TopologyEntry
    observed_at_s: float
    status: TopologyStatus | None = None
    metrics: tuple[MetricsRow, ...] = ()
    metrics_at_s: float = float("-inf")
    figures: FiguresOfTasks = field(default_factory=FiguresOfTasks)
    figures_at_s: float = float("-inf")
    plans: TopologyPlans | None = None
    versions: tuple[ObservedVersion, ...] = ()
    failures: Failures = field(default_factory=dict)
    memory: RecentMemory = field(default_factory=RecentMemory)
    checkpoints: SeenCheckpoints = ()
    health: HealthRecords | None = None
    links: tuple[JobLink, ...] = ()
    events: tuple[ObservedEvent, ...] = ()
    events_seen: int = 0
    error: str = ""
    revision: int = 0
    made: MadeAnswers = field(default_factory=MadeAnswers, init=False, repr=False, compare=False)

    @property
    def name(self) -> str:
        """The name of the topology; another cluster may have the same."""
        return self.entry.name

    @property
    def is_live(self) -> bool:
        """Whether its topology manager is asked."""
        return self.entry.state in LIVE_STATES


@dataclass(frozen=True, slots=True)
class ObservedCluster:
    """One profile. `observed_at_s` is None until its state manager has answered once."""

    name: str
    topologies: dict[str, ObservedTopology]
    observed_at_s: float | None = None
    error: str = "it has not answered yet"


def age_s(observed_at_s: float, now_s: float) -> float:
    """Return the age in seconds of a value, never negative; milliseconds are enough for people."""
    return round(max(0.0, now_s - observed_at_s), 3)
