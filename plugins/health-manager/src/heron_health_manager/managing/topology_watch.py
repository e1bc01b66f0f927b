"""What the health manager sees of its topology: metrics, status and plan, over its own key."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from heron.clock import monotonic_s
from heron.errors import StateError
from heron.ipc.documents.status import TopologyStatus, UpdateStatus
from heron.planner.physical_plan import PhysicalPlan
from heron.spi.health_section import ComponentBounds
from heron.spi.health_values import Sample
from heron_cli.topologies.running.remote_topology import RemoteTopology
from heron_cli.topologies.running.topology_plans import TopologyPlans
from heron_health_manager.managing.manager import Observed
from heron_health_manager.managing.recovery import PlanFacts
from heron_health_manager.observing.observing import SampleReader, observation_of
from heron_health_manager.observing.restart_history import RestartHistory

__all__ = ["TopologyWatch"]

_TASKS_AT_ONCE = 2_000  # of whose metrics an answer is complete; it has some megabytes, and exists several times


class TopologyWatch:
    """Observes one run of a topology. It reads the plans again only when their version has changed.

    `metrics` are the names of the metrics that are observed; none for all. `blocked` returns the containers whose hosts
    are known, with the seconds that their host has been blocked.
    """

    def __init__(
        self,
        topology: RemoteTopology,
        topology_id: str,
        bounds: Mapping[str, ComponentBounds],
        metrics: Collection[str] = (),
        blocked: Callable[[], Mapping[int, float]] | None = None,
    ) -> None:
        self._topology = topology
        self._topology_id = topology_id
        self._bounds = bounds
        self._metrics = metrics
        self._blocked = blocked
        self._history = RestartHistory()
        self._plans: TopologyPlans | None = None
        self._seen: tuple[int, UpdateStatus | None] | None = None

    def look(self) -> Observed:
        """Observe the topology now.

        Raises:
            StateError: when it has no physical plan yet, or another run has its name.
            HeronError: as `RemoteTopology` does.
        """
        samples, status = self._samples(), self._topology.status()
        if status.topology_id != self._topology_id:
            msg = f"another run of topology {self._topology.name!r} has begun: {status.topology_id}"
            raise StateError(msg)
        plans, physical = self._read_plans(status)
        observation = observation_of(physical, status, samples, monotonic_s(), self._bounds, self._history)
        if self._blocked is not None:
            observation = replace(observation, blocked=self._blocked())
        update = status.update
        withdrawn = update.target if update and update.phase == "withdrawn" else ""
        why = update.waits_for if update and withdrawn else ""
        prepared = update.target if update and update.phase == "prepare" else ""
        containers = frozenset(each.container_id for each in physical.tasks if prepared)
        facts = PlanFacts(observation.shape, plans.packing.id, withdrawn, why, prepared, containers)
        return Observed(observation, facts)

    def _samples(self) -> tuple[Sample, ...]:
        """The newest samples. Of a large topology they are asked for by parts, each with some of the names."""
        tasks = len(self._plans.physical.tasks) if self._plans and self._plans.physical else 0
        names, reader = sorted(self._metrics), SampleReader()
        parts = min(1 + tasks // _TASKS_AT_ONCE, max(1, len(names)))  # no names mean all
        for part in range(parts):
            self._topology.read_task_metrics(names[part::parts], reader)
        return tuple(reader.samples)

    def _read_plans(self, status: TopologyStatus) -> tuple[TopologyPlans, PhysicalPlan]:
        version = (status.plan_version, status.update)
        if self._plans is None or self._seen != version:
            self._plans, self._seen = self._topology.plans(), version
        if self._plans.physical is None or self._plans.physical.version < status.plan_version:
            self._seen = None  # the plans were read a moment too early
        if self._plans.physical is None:
            msg = f"topology {self._topology.name!r} has no physical plan yet"
            raise StateError(msg)
        return self._plans, self._plans.physical
