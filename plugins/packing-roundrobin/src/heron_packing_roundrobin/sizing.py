"""The size of a container and the resources of its instances, by one rule for each resource."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from heron.errors import PackingError
from heron.planner.amounts import MIN_CORES
from heron.planner.packing_plan import ContainerPlan, InstancePlan, Resource
from heron.planner.resource_map import ResourceMap
from heron_packing_kit.plan_draft import DraftInstance
from heron_packing_roundrobin.options import RoundRobinOptions
from heron_packing_roundrobin.rule import Demand, Rule

__all__ = ["Sizing"]

_LEAST_RAM_BYTES = 16 << 20  # the limit of Heron; a Python process needs more
_LEAST_DISK_BYTES = 1

_log = logging.getLogger(__name__)


class Sizing:
    """The rules for cpu, ram and disk of a topology, from its keys and the driver's options."""

    __slots__ = ("rules",)

    def __init__(self, wanted: ResourceMap, options: RoundRobinOptions) -> None:
        ram_parts = (
            _first(wanted.stmgr_ram_bytes, options.stmgr_ram_bytes),
            _first(wanted.metricsmgr_ram_bytes, options.metricsmgr_ram_bytes),
        )
        self.rules = (
            Rule(
                "cpu",
                wanted.cpu,
                options.instance_cpu,
                MIN_CORES,
                _first(wanted.padding.cpu, options.container_cpu_padding),
                wanted.container.cpu,
                wanted.hint.cpu,
            ),
            Rule(
                "ram",
                wanted.ram_bytes,
                options.instance_ram_bytes,
                _LEAST_RAM_BYTES,
                _first(wanted.padding.ram_bytes, sum(ram_parts)),
                wanted.container.ram_bytes,
                wanted.hint.ram_bytes,
            ),
            Rule(
                "disk",
                wanted.disk_bytes,
                options.instance_disk_bytes,
                _LEAST_DISK_BYTES,
                _first(wanted.padding.disk_bytes, options.container_disk_padding_bytes),
                wanted.container.disk_bytes,
                wanted.hint.disk_bytes,
            ),
        )

    def container(self, container_id: int, instances: Sequence[DraftInstance]) -> ContainerPlan:
        """Return the plan of a container with these instances.

        Raises:
            PackingError: when the instances do not fit; names container, resource, amount and limit.
        """
        components = [instance.component for instance in instances]
        demands = self.demands(components)
        for rule, demand in zip(self.rules, demands, strict=True):
            if problem := rule.problem(demand, components):
                msg = f"container {container_id}: {problem}"
                raise PackingError(msg)
            if rule.is_tight(demand):
                _log.warning(
                    "container %d: its instances leave less %s than the padding of %s %s, so the engine shares theirs; "
                    "raise topology.container.%s",
                    container_id,
                    rule.name,
                    rule.padding,
                    rule.unit,
                    rule.name,
                )
        shares = [rule.share(demand) for rule, demand in zip(self.rules, demands, strict=True)]
        return ContainerPlan(
            container_id,
            tuple(
                InstancePlan(
                    instance.component,
                    instance.task_id,
                    instance.component_index,
                    self._resource(instance.component, shares),
                )
                for instance in instances
            ),
            _resource(rule.total(demand) for rule, demand in zip(self.rules, demands, strict=True)),
        )

    def demands(self, components: Iterable[str]) -> tuple[Demand, ...]:
        """Return the demands of these instances, one for each resource."""
        demands = tuple(Demand() for _ in self.rules)
        for component in components:
            demands = self.with_one_more(demands, component)
        return demands

    def with_one_more(self, demands: tuple[Demand, ...], component: str) -> tuple[Demand, ...]:
        """Return the demands with one more instance of the component."""
        return tuple(rule.add(demand, component) for rule, demand in zip(self.rules, demands, strict=True))

    def fits(self, demands: tuple[Demand, ...], component: str) -> bool:
        """Whether a container can have these demands, which include the newest instance of the component."""
        return not any(rule.problem(demand, (component,)) for rule, demand in zip(self.rules, demands, strict=True))

    def fits_all(self, instances: Sequence[DraftInstance]) -> bool:
        """Whether a container can have these instances."""
        components = [each.component for each in instances]
        demands = self.demands(components)
        return not any(rule.problem(demand, components) for rule, demand in zip(self.rules, demands, strict=True))

    def _resource(self, component: str, shares: Sequence[float]) -> Resource:
        return _resource(rule.shares.get(component, share) for rule, share in zip(self.rules, shares, strict=True))


def _first(wanted: float | None, default: float) -> float:
    return default if wanted is None else wanted


def _resource(amounts: Iterable[float]) -> Resource:
    cpu, ram_bytes, disk_bytes = amounts
    return Resource(float(cpu), int(ram_bytes), int(disk_bytes))
