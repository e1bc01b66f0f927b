"""The packing driver ``rcrr``."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import ClassVar, Self

from heron.api.definition import TopologyDefinition
from heron.planner.packing_plan import PackingPlan
from heron.planner.resource_map import CONTAINERS, Limits, read_resource_map
from heron.spi.packing import Packing
from heron_packing_kit.capacity import CapacityDefaults, capacity_of
from heron_packing_kit.capacity_options import CapacitySection, read_capacity_options
from heron_packing_kit.container_moves import in_containers
from heron_packing_kit.first_fit import FirstFit
from heron_packing_kit.plan_change import check_parallelism, read_change
from heron_packing_kit.plan_draft import PlanDraft
from heron_packing_rcrr.container_count import fewest_containers, shortfall

__all__ = ["ResourceCompliantPacking"]

_log = logging.getLogger(__name__)


class ResourceCompliantPacking(Packing):
    """Assigns instances to the containers in turn, 1, 2, … N, 1, 2, …, in the order of declaration.

    N starts at ``topology.stmgrs`` and grows until each container has room for its instances. Source: Heron's
    ``ResourceCompliantRRPacking``.
    """

    spi_version: ClassVar[int] = 2
    options_type: ClassVar[type] = CapacitySection

    def __init__(self, defaults: CapacityDefaults) -> None:
        self._defaults = defaults

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        return cls(read_capacity_options(options))

    def pack(self, topology: TopologyDefinition) -> PackingPlan:
        total = check_parallelism(topology)
        resources = read_resource_map(topology)
        capacity = capacity_of(topology, resources, self._defaults)
        wanted = resources.containers
        if wanted > total:
            _log.warning(
                "%s %d exceeds the number of instances, %d; using %d containers", CONTAINERS, wanted, total, total
            )
        instances = [(each.name, index) for each in topology.components for index in range(each.parallelism)]
        count = fewest_containers([capacity.needs[name] for name, _ in instances], capacity, min(wanted, total))
        if count > wanted:
            _log.info("%s is %d, but the resources need %d containers", CONTAINERS, wanted, count)
        draft = PlanDraft()
        containers = [draft.open() for _ in range(count)]
        for at, (component, index) in enumerate(instances):
            draft.place(component, index, containers[at % count])
        return draft.plan(capacity.container)

    def repack(self, current: PackingPlan, topology: TopologyDefinition, parallelism: Mapping[str, int]) -> PackingPlan:
        """Keep remaining instances in place; assign new instances in turn after the container of the newest task."""
        change = read_change(current, topology, parallelism)
        if not change:
            return current
        capacity = capacity_of(topology, read_resource_map(topology), self._defaults)
        additions = change.additions([component.name for component in topology.components])
        draft = PlanDraft(current)
        draft.shrink(change.after)
        first_fit = FirstFit(draft, capacity, len(additions))
        at = _after_newest_task(draft)
        for _ in range(shortfall([capacity.needs[name] for name, _ in additions], first_fit.free(), capacity)):
            first_fit.open()
        for component, index in additions:
            at = first_fit.place(component, index, at) + 1
        return draft.plan(capacity.container)

    def repack_into(
        self, current: PackingPlan, topology: TopologyDefinition, parallelism: Mapping[str, int], containers: int
    ) -> PackingPlan:
        """Move the fewest instances; Heron makes a new plan, so it moves nearly every task."""
        repacked = self.repack(current, topology, parallelism)
        capacity = capacity_of(topology, read_resource_map(topology), self._defaults)
        return in_containers(current, repacked, topology, containers, capacity.container, capacity.fits)

    def limits(self, topology: TopologyDefinition) -> Limits:
        return Limits(*capacity_of(topology, read_resource_map(topology), self._defaults).limit.amounts())


def _after_newest_task(draft: PlanDraft) -> int:
    """Return the position after the container of the newest task."""
    newest = [max((each.task_id for each in draft.instances(id_)), default=0) for id_ in draft.container_ids()]
    return newest.index(max(newest)) + 1
