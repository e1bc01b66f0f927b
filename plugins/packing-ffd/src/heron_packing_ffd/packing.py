"""The packing driver ``ffd``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final, Self

from heron.api.api_constants import TOPOLOGY_PACKING_FFD_SORTING_STRATEGY as STRATEGY
from heron.api.definition import TopologyDefinition
from heron.errors import ConfigError, known, nearest
from heron.planner.packing_plan import PackingPlan, Resource
from heron.planner.resource_map import Limits, read_resource_map
from heron.spi.packing import Packing
from heron_packing_kit.capacity import Capacity, CapacityDefaults, capacity_of
from heron_packing_kit.capacity_options import CapacitySection, read_capacity_options
from heron_packing_kit.container_moves import in_containers
from heron_packing_kit.first_fit import FirstFit
from heron_packing_kit.plan_change import check_parallelism, read_change
from heron_packing_kit.plan_draft import PlanDraft

__all__ = ["FirstFitDecreasingPacking"]

_RAM_FIRST: Final = "RAM_FIRST"
_CPU_FIRST: Final = "CPU_FIRST"


class FirstFitDecreasingPacking(Packing):
    """Places components by decreasing need, and each instance into the first container with room.

    It opens containers as it needs them, and does not use ``topology.stmgrs``. If one resource decides, it needs at
    most 11/9 of the minimum number of containers, plus 6/9 (G. Dósa, 2007). Source: Heron's
    ``FirstFitDecreasingPacking``.
    """

    spi_version: ClassVar[int] = 2
    options_type: ClassVar[type] = CapacitySection

    def __init__(self, defaults: CapacityDefaults) -> None:
        self._defaults = defaults

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        return cls(read_capacity_options(options))

    def pack(self, topology: TopologyDefinition) -> PackingPlan:
        check_parallelism(topology)
        capacity = capacity_of(topology, read_resource_map(topology), self._defaults)
        parallelism = {component.name: component.parallelism for component in topology.components}
        additions = [(name, index) for name in _decreasing(topology, capacity) for index in range(parallelism[name])]
        return _filled(PlanDraft(), capacity, additions)

    def repack(self, current: PackingPlan, topology: TopologyDefinition, parallelism: Mapping[str, int]) -> PackingPlan:
        """Keep remaining instances in place; put each new instance into the first container with room."""
        change = read_change(current, topology, parallelism)
        if not change:
            return current
        capacity = capacity_of(topology, read_resource_map(topology), self._defaults)
        draft = PlanDraft(current)
        draft.shrink(change.after)
        return _filled(draft, capacity, change.additions(_decreasing(topology, capacity)))

    def repack_into(
        self, current: PackingPlan, topology: TopologyDefinition, parallelism: Mapping[str, int], containers: int
    ) -> PackingPlan:
        """Move the fewest instances. Heron refuses a number of containers with this packing."""
        repacked = self.repack(current, topology, parallelism)
        capacity = capacity_of(topology, read_resource_map(topology), self._defaults)
        return in_containers(current, repacked, topology, containers, capacity.container, capacity.fits)

    def limits(self, topology: TopologyDefinition) -> Limits:
        return Limits(*capacity_of(topology, read_resource_map(topology), self._defaults).limit.amounts())


def _decreasing(topology: TopologyDefinition, capacity: Capacity) -> list[str]:
    """Return the components, largest need first; components with equal needs in the order of declaration."""
    strategy = topology.config.get(STRATEGY, _RAM_FIRST)
    if strategy not in (_RAM_FIRST, _CPU_FIRST):
        choices = (_RAM_FIRST, _CPU_FIRST)
        msg = f"{STRATEGY}: {strategy!r} is unknown{nearest(str(strategy), choices)}; known: {known(choices)}"
        raise ConfigError(msg)

    def size(name: str) -> tuple[float, float]:
        need: Resource = capacity.needs[name]
        return (need.ram_bytes, need.cpu) if strategy == _RAM_FIRST else (need.cpu, need.ram_bytes)

    return sorted((component.name for component in topology.components), key=size, reverse=True)


def _filled(draft: PlanDraft, capacity: Capacity, additions: Sequence[tuple[str, int]]) -> PackingPlan:
    first_fit = FirstFit(draft, capacity, len(additions))
    for component, index in additions:
        first_fit.place(component, index)
    return draft.plan(capacity.container)
