"""The capacity of a container, for packings that fill containers up to a limit.

The limit of a resource is the first of these values that is set:

1. the container size (``topology.container.ram``);
2. the maximum container size (``topology.container.max.ram.hint``);
3. the default of an instance times the maximum number of instances.

A part of the limit, the padding, is reserved for the engine: an amount or a percentage of the limit, whichever is
larger. The rest is the *room* for instances. Source: Heron's ``AbstractPacking``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from heron.api.definition import TopologyDefinition
from heron.errors import PackingError
from heron.planner.packing_plan import CPU_ROUNDING, NO_RESOURCE, ContainerPlan, InstancePlan, Resource
from heron.planner.resource_map import ResourceMap
from heron_packing_kit.plan_draft import DraftInstance

__all__ = ["MIN_INSTANCE", "Capacity", "CapacityDefaults", "capacity_of"]

MIN_INSTANCE: Final = Resource(0.1, 192 << 20, 1)
"""The minimum resources of an instance. Cores and memory are Heron's limits for such packings."""


@dataclass(frozen=True, slots=True)
class CapacityDefaults:
    """The driver's defaults, for topologies that do not set the keys."""

    instance: Resource
    padding: Resource
    padding_percentage: float
    max_instances: int


@dataclass(frozen=True, slots=True)
class Capacity:
    """The limit of a container, including its padding, and the resources of an instance of each component.

    An instance of each component fits into an empty container: `capacity_of` has checked it.
    """

    limit: Resource
    padding: Resource
    max_instances: int
    needs: Mapping[str, Resource]

    @property
    def room(self) -> Resource:
        """The part of an empty container that instances can use."""
        return self.limit - self.padding

    def used(self, instances: Iterable[DraftInstance]) -> Resource:
        """The sum of the resources of these instances. Instances of the current plan keep their resources."""
        return sum((self._resource(each) for each in instances), NO_RESOURCE)

    def fits(self, instances: Sequence[DraftInstance]) -> bool:
        """Whether a container has room for these instances."""
        free = self.room - self.used(instances)
        return len(instances) <= self.max_instances and all(each >= -CPU_ROUNDING for each in free.amounts())

    def container(self, container_id: int, instances: Sequence[DraftInstance]) -> ContainerPlan:
        """The plan of a container with these instances; its size is their sum and the padding."""
        return ContainerPlan(
            container_id,
            tuple(
                InstancePlan(each.component, each.task_id, each.component_index, self._resource(each))
                for each in instances
            ),
            self.used(instances) + self.padding,
        )

    def _resource(self, instance: DraftInstance) -> Resource:
        return instance.resource or self.needs[instance.component]


def capacity_of(topology: TopologyDefinition, resources: ResourceMap, defaults: CapacityDefaults) -> Capacity:
    """The capacity from the keys of a topology (its resource map) and the driver's defaults.

    Raises:
        PackingError: when the container size exceeds the maximum, when an instance is below the minimum, or when an
            instance does not fit into an empty container; names component, resource, amount, limit and unit.
    """
    max_instances = resources.max_instances or defaults.max_instances
    bounds = _bounds(resources, defaults, max_instances)
    components = [component.name for component in topology.components]
    for bound, minimum in zip(bounds, MIN_INSTANCE.amounts(), strict=True):
        for component in components:
            bound.check(component, minimum)
    needs = {
        component: _resource(bound.requests.get(component, bound.default) for bound in bounds)
        for component in components
    }
    return Capacity(
        limit=_resource(bound.limit for bound in bounds),
        padding=_resource(bound.padding for bound in bounds),
        max_instances=max_instances,
        needs=needs,
    )


@dataclass(frozen=True, slots=True)
class _Bound:
    """One resource: its `name` in keys, the requests by component, and the limit with its `source` (a key)."""

    name: str
    requests: Mapping[str, float]
    default: float
    limit: float
    source: str
    padding: float

    @property
    def unit(self) -> str:
        return "cores" if self.name == "cpu" else "bytes"

    def check(self, component: str, minimum: float) -> None:
        need = self.requests.get(component, self.default)
        where = f"component {component!r} requests {need} {self.unit} of {self.name} per instance"
        if need < minimum:
            msg = (
                f"{where}, below the minimum of {minimum} {self.unit}; raise its entry in "
                f"topology.component.{self.name}map, or packing.instance_{self.name}"
            )
            raise PackingError(msg)
        if need - (self.limit - self.padding) > CPU_ROUNDING:
            msg = (
                f"{where}, but a container has room for {max(self.limit - self.padding, 0)} {self.unit}: {self.limit} "
                f"{self.unit} ({self.source}) minus a padding of {self.padding} {self.unit}; raise "
                f"topology.container.{self.name}, or lower topology.component.{self.name}map or the padding"
            )
            raise PackingError(msg)


def _bounds(resources: ResourceMap, defaults: CapacityDefaults, max_instances: int) -> list[_Bound]:
    configured = resources.padding_percentage
    percentage = defaults.padding_percentage if configured is None else configured
    bounds: list[_Bound] = []
    for name, requests, default, container, hint, padding, default_padding in zip(
        ("cpu", "ram", "disk"),
        (resources.cpu, resources.ram_bytes, resources.disk_bytes),
        defaults.instance.amounts(),
        resources.container.amounts(),
        resources.hint.amounts(),
        resources.padding.amounts(),
        defaults.padding.amounts(),
        strict=True,
    ):
        limit, source = _limit(name, container, hint, default, max_instances)
        part = limit * percentage / 100
        bounds.append(
            _Bound(
                name,
                requests,
                default,
                limit,
                source,
                max(default_padding if padding is None else padding, part if name == "cpu" else -int(-part // 1)),
            )
        )
    return bounds


def _limit(
    name: str, container: float | None, hint: float | None, default: float, max_instances: int
) -> tuple[float, str]:
    """The limit of a resource, and the key that gave it."""
    if container is not None and hint is not None and container > hint:
        unit = "cores" if name == "cpu" else "bytes"
        msg = (
            f"topology.container.{name} is {container} {unit}, more than topology.container.max.{name}.hint, {hint} "
            f"{unit}; raise the hint or lower the size"
        )
        raise PackingError(msg)
    if container is not None:
        return container, f"topology.container.{name}"
    if hint is not None:
        return hint, f"topology.container.max.{name}.hint"
    return default * max_instances, f"{max_instances} times packing.instance_{name}"


def _resource(amounts: Iterable[float]) -> Resource:
    cpu, ram_bytes, disk_bytes = amounts
    return Resource(float(cpu), int(ram_bytes), int(disk_bytes))
