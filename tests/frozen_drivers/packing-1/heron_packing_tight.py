"""The packing ``tight``: each new instance goes into the first container that has room."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Self

from heron.api.definition import TopologyDefinition
from heron.planner.capacity import Capacity, CapacityDefaults, capacity_of
from heron.planner.first_fit import Fitting
from heron.planner.packing_plan import PackingPlan
from heron.planner.plan_change import check_parallelism, read_change
from heron.planner.plan_draft import PlanDraft
from heron.planner.resource_map import Limits, read_resource_map
from heron.spi.capacity_options import CapacitySection, read_capacity_options
from heron.spi.packing import Packing


class TightPacking(Packing):
    """Uses as few containers as first fit finds."""

    spi_version: ClassVar[int] = 1
    options_type: ClassVar[type] = CapacitySection

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        return cls(read_capacity_options(options))

    def __init__(self, defaults: CapacityDefaults) -> None:
        self._defaults = defaults

    def pack(self, topology: TopologyDefinition) -> PackingPlan:
        check_parallelism(topology)
        instances = [(each.name, index) for each in topology.components for index in range(each.parallelism)]
        return _filled(PlanDraft(), instances, self._capacity(topology))

    def repack(self, current: PackingPlan, topology: TopologyDefinition, parallelism: Mapping[str, int]) -> PackingPlan:
        change = read_change(current, topology, parallelism)
        if not change:
            return current
        draft = PlanDraft(current)
        draft.shrink(change.after)
        return _filled(draft, change.additions([each.name for each in topology.components]), self._capacity(topology))

    def limits(self, topology: TopologyDefinition) -> Limits:
        return Limits(*self._capacity(topology).limit.amounts())

    def _capacity(self, topology: TopologyDefinition) -> Capacity:
        return capacity_of(topology, read_resource_map(topology), self._defaults)


def _filled(draft: PlanDraft, additions: Sequence[tuple[str, int]], capacity: Capacity) -> PackingPlan:
    fitting = Fitting(draft, capacity, len(additions))
    for component, index in additions:
        fitting.place(component, index)
    return draft.plan(capacity.container)
