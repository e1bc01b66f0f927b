"""The driver: deals instances to containers in turn, and changes a plan with the least disruption."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Self

from heron.api.definition import ComponentDefinition, TopologyDefinition
from heron.errors import PackingError, known, nearest
from heron.planner.codec import fingerprint
from heron.planner.packing_plan import ContainerPlan, PackingPlan
from heron.planner.resource_map import CONTAINERS, ResourceMap, read_resource_map
from heron.spi.packing import SPI_VERSION, Packing
from heron_packing_roundrobin.options import RoundRobinOptions, RoundRobinSection
from heron_packing_roundrobin.rebalance import Rebalance
from heron_packing_roundrobin.sizing import Sizing

__all__ = ["RoundRobinPacking"]


class RoundRobinPacking(Packing):
    """Packs by dealing: container 1, 2, … N, 1, 2, … over all components, those with the most memory first.

    The number of containers is ``topology.stmgrs``. Source: Heron's ``RoundRobinPacking``.
    """

    spi_version: ClassVar[int] = SPI_VERSION
    options_type: ClassVar[type] = RoundRobinSection

    def __init__(self, options: RoundRobinOptions) -> None:
        self._options = options

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        """As `Packing.open`."""
        return cls(RoundRobinOptions.read(options))

    def pack(self, topology: TopologyDefinition) -> PackingPlan:
        """As `Packing.pack`."""
        wanted = read_resource_map(topology)
        sizing = Sizing(wanted, self._options)
        for component in topology.components:
            _check_parallelism(component.name, component.parallelism)
        total = sum(component.parallelism for component in topology.components)
        if wanted.containers > total:
            msg = (
                f"topology {topology.name!r}: {CONTAINERS} {wanted.containers} exceeds the number of instances, "
                f"{total}; lower it to at most {total}"
            )
            raise PackingError(msg)
        hands: list[list[tuple[str, int, int]]] = [[] for _ in range(wanted.containers)]
        task_id = 0
        for component in by_memory(topology, wanted):
            for index in range(component.parallelism):
                hands[task_id % wanted.containers].append((component.name, task_id + 1, index))
                task_id += 1
        return _plan(tuple(sizing.container(container_id, hand) for container_id, hand in enumerate(hands, 1)), task_id)

    def repack(self, current: PackingPlan, topology: TopologyDefinition, parallelism: Mapping[str, int]) -> PackingPlan:
        """As `Packing.repack`. What is not removed stays where it is; what is new goes where the fewest are."""
        before = _packed(current, topology)
        for component, count in parallelism.items():
            if component not in before:
                near = nearest(component, before)
                msg = f"there is no component {component!r}{near}; known: {known(before)}"
                raise PackingError(msg)
            _check_parallelism(component, count)
        after = {**before, **parallelism}
        if after == before:
            return current
        wanted = read_resource_map(topology)
        rebalance = Rebalance(current, Sizing(wanted, self._options))
        rebalance.shrink(after)
        additions = [
            (component.name, index)
            for component in by_memory(topology, wanted)
            for index in range(before[component.name], after[component.name])
        ]
        if additions:
            rebalance.open_containers(_containers_for(sum(after.values()), topology, wanted))
        last = rebalance.grow(additions)
        return _plan(rebalance.containers(), last)


def by_memory(topology: TopologyDefinition, wanted: ResourceMap) -> list[ComponentDefinition]:
    """The components, those with the largest entry in the memory map first, else in the order of declaration."""
    return sorted(topology.components, key=lambda component: -wanted.ram_bytes.get(component.name, 0))


def _packed(current: PackingPlan, topology: TopologyDefinition) -> dict[str, int]:
    """The parallelism in the plan, once it is known to be a plan of this topology."""
    before = current.parallelism()
    components = {component.name for component in topology.components}
    if before.keys() != components:
        msg = (
            f"packing plan {current.id!r} has the components {known(before)}, topology {topology.name!r} has "
            f"{known(components)}; pack the topology anew"
        )
        raise PackingError(msg)
    return before


def _containers_for(instances: int, topology: TopologyDefinition, wanted: ResourceMap) -> int:
    """As many containers as keep the number of instances in each at what the topology was submitted with."""
    submitted = sum(component.parallelism for component in topology.components)
    return -(-instances * wanted.containers // submitted)


def _plan(containers: tuple[ContainerPlan, ...], last_task_id: int) -> PackingPlan:
    return PackingPlan(fingerprint(containers, last_task_id), containers, last_task_id)


def _check_parallelism(component: str, count: object) -> None:
    if type(count) is not int or count < 1:
        msg = f"component {component!r}: parallelism {count!r} is not an integer of 1 or more; raise it"
        raise PackingError(msg)
