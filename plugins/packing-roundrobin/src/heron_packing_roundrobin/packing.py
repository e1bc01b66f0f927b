"""The packing driver ``roundrobin``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Self

from heron.api.definition import TopologyDefinition
from heron.errors import PackingError
from heron.planner.packing_plan import PackingPlan
from heron.planner.resource_map import CONTAINERS, ResourceMap, read_resource_map
from heron.spi.packing import Packing
from heron_packing_kit.container_moves import in_containers
from heron_packing_kit.plan_change import check_parallelism, read_change
from heron_packing_kit.plan_draft import PlanDraft
from heron_packing_roundrobin.options import RoundRobinOptions, RoundRobinSection
from heron_packing_roundrobin.rebalance import Rebalance
from heron_packing_roundrobin.sizing import Sizing

__all__ = ["RoundRobinPacking"]


class RoundRobinPacking(Packing):
    """Assigns instances to the containers in turn, 1, 2, … N, 1, 2, …, components with the most memory first.

    N is ``topology.stmgrs``. Source: Heron's ``RoundRobinPacking``.
    """

    spi_version: ClassVar[int] = 2
    options_type: ClassVar[type] = RoundRobinSection

    def __init__(self, options: RoundRobinOptions) -> None:
        self._options = options

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        return cls(RoundRobinOptions.read(options))

    def pack(self, topology: TopologyDefinition) -> PackingPlan:
        total = check_parallelism(topology)
        wanted = read_resource_map(topology)
        if wanted.containers > total:
            msg = f"{CONTAINERS} {wanted.containers} exceeds the number of instances, {total}; lower it to {total}"
            raise PackingError(msg)
        draft = PlanDraft()
        containers = [draft.open() for _ in range(wanted.containers)]
        parallelism = {component.name: component.parallelism for component in topology.components}
        instances = [(name, index) for name in by_memory(topology, wanted) for index in range(parallelism[name])]
        for at, (component, index) in enumerate(instances):
            draft.place(component, index, containers[at % len(containers)])
        return draft.plan(Sizing(wanted, self._options).container)

    def repack(self, current: PackingPlan, topology: TopologyDefinition, parallelism: Mapping[str, int]) -> PackingPlan:
        """Keep remaining instances in place; put each new instance into the container with the fewest instances."""
        change = read_change(current, topology, parallelism)
        if not change:
            return current
        wanted = read_resource_map(topology)
        sizing = Sizing(wanted, self._options)
        draft = PlanDraft(current)
        draft.shrink(change.after)
        additions = change.additions(by_memory(topology, wanted))
        if additions:
            rebalance = Rebalance(draft, sizing)
            rebalance.open_containers(_containers_for(sum(change.after.values()), topology, wanted))
            rebalance.grow(additions)
        return draft.plan(sizing.container)

    def repack_into(
        self, current: PackingPlan, topology: TopologyDefinition, parallelism: Mapping[str, int], containers: int
    ) -> PackingPlan:
        """Move the fewest instances; Heron makes a new plan, so it moves nearly every task."""
        repacked = self.repack(current, topology, parallelism)
        sizing = Sizing(read_resource_map(topology), self._options)
        return in_containers(current, repacked, topology, containers, sizing.container, sizing.fits_all)


def by_memory(topology: TopologyDefinition, wanted: ResourceMap) -> list[str]:
    """Return the components, largest entry in the memory map first; others in the order of declaration."""
    names = [component.name for component in topology.components]
    return sorted(names, key=lambda name: -wanted.ram_bytes.get(name, 0))


def _containers_for(instances: int, topology: TopologyDefinition, wanted: ResourceMap) -> int:
    """Return the number of containers that keeps the instances per container as at submission."""
    submitted = sum(component.parallelism for component in topology.components)
    return -(-instances * wanted.containers // submitted)
