"""The packing ``spread``: each new instance goes into the container that has the fewest instances and has room."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from typing import ClassVar, Self

from heron.api.definition import TopologyDefinition
from heron.planner.capacity import Capacity, CapacityDefaults, capacity_of
from heron.planner.packing_plan import CPU_ROUNDING, PackingPlan, Resource
from heron.planner.plan_change import check_parallelism, read_change
from heron.planner.plan_draft import PlanDraft
from heron.planner.resource_map import Limits, read_resource_map
from heron.spi.capacity_options import CapacitySection, read_capacity_options
from heron.spi.packing import Packing


class SpreadPacking(Packing):
    """Keeps containers equally full, so that the loss of one loses as little as possible."""

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
        draft = PlanDraft()
        for _ in range(min(len(instances), read_resource_map(topology).containers)):
            draft.open()
        return _spread(draft, instances, self._capacity(topology))

    def repack(self, current: PackingPlan, topology: TopologyDefinition, parallelism: Mapping[str, int]) -> PackingPlan:
        change = read_change(current, topology, parallelism)
        if not change:
            return current
        draft = PlanDraft(current)
        draft.shrink(change.after)
        return _spread(draft, change.additions([each.name for each in topology.components]), self._capacity(topology))

    def limits(self, topology: TopologyDefinition) -> Limits:
        return Limits(*self._capacity(topology).limit.amounts())

    def _capacity(self, topology: TopologyDefinition) -> Capacity:
        return capacity_of(topology, read_resource_map(topology), self._defaults)


def _spread(draft: PlanDraft, additions: Sequence[tuple[str, int]], capacity: Capacity) -> PackingPlan:
    present = {each: draft.members(each) for each in draft.container_ids()}
    free = {each: capacity.room - capacity.used(instances) for each, instances in present.items()}
    fewest = [(len(instances), each) for each, instances in present.items()]
    heapq.heapify(fewest)
    for component, index in additions:
        need, full = capacity.needs[component], []
        while fewest and not _has_room(free[fewest[0][1]], need, capacity.max_instances - fewest[0][0]):
            full.append(heapq.heappop(fewest))
        count, container_id = heapq.heappop(fewest) if fewest else (0, draft.open())
        draft.place(component, index, container_id)
        free[container_id] = free.get(container_id, capacity.room) - need
        for each in (*full, (count + 1, container_id)):
            heapq.heappush(fewest, each)
    return draft.plan(capacity.container)


def _has_room(free: Resource, need: Resource, instances: int) -> bool:
    return instances > 0 and all(each >= -CPU_ROUNDING for each in (free - need).amounts())
