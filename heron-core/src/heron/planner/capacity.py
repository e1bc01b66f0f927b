"""What one container may hold, for packings that fill containers up to a limit.

The limit of a resource is the size that the topology asks for (``topology.container.ram``), else the most that it
allows (``topology.container.max.ram.hint``), else the default of an instance times the most instances. Of it the
padding is kept for the engine: the amount of its key, or the percentage of the limit where that is more. What is left
is the *room* for instances. Source: Heron's ``AbstractPacking``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from heron.api.definition import TopologyDefinition
from heron.errors import PackingError
from heron.planner.packing_plan import CPU_ROUNDING, NO_RESOURCE, ContainerPlan, InstancePlan, Resource
from heron.planner.plan_draft import Member
from heron.planner.resource_map import ResourceMap

__all__ = ["LEAST_INSTANCE", "Capacity", "CapacityDefaults", "capacity_of"]

LEAST_INSTANCE: Final = Resource(0.1, 192 << 20, 1)
"""An instance gets at least this; cores and memory are Heron's own limits for such packings."""


@dataclass(frozen=True, slots=True)
class CapacityDefaults:
    """What holds where the topology says nothing."""

    instance: Resource
    padding: Resource
    padding_percentage: float
    max_instances: int


@dataclass(frozen=True, slots=True)
class Capacity:
    """The limit of every container, padding included, and what each component's instances need.

    Every component fits an empty container: `capacity_of` has checked that.
    """

    limit: Resource
    padding: Resource
    max_instances: int
    needs: Mapping[str, Resource]

    @property
    def room(self) -> Resource:
        """What an empty container has for instances."""
        return self.limit - self.padding

    def used(self, members: Iterable[Member]) -> Resource:
        """What these members take together; those of the present plan what they have there."""
        return sum((self._resource(each) for each in members), NO_RESOURCE)

    def container(self, container_id: int, members: Sequence[Member]) -> ContainerPlan:
        """The plan of a container with these members: what they take, and the padding."""
        return ContainerPlan(
            container_id,
            tuple(
                InstancePlan(each.component, each.task_id, each.component_index, self._resource(each))
                for each in members
            ),
            self.used(members) + self.padding,
        )

    def _resource(self, member: Member) -> Resource:
        return member.resource or self.needs[member.component]


def capacity_of(topology: TopologyDefinition, wanted: ResourceMap, defaults: CapacityDefaults) -> Capacity:
    """The capacity that a topology's keys (its resource map) and the driver's defaults give.

    Raises:
        PackingError: when a container asked for is above the most allowed, when an instance is below the least, or
            when one does not fit an empty container; names component, resource, amount, limit and unit.
    """
    max_instances = wanted.max_instances or defaults.max_instances
    bounds = _bounds(wanted, defaults, max_instances)
    components = [component.name for component in topology.components]
    for bound, least in zip(bounds, LEAST_INSTANCE.amounts(), strict=True):
        for component in components:
            bound.check(component, least)
    needs = {
        component: _resource(bound.asked.get(component, bound.default) for bound in bounds) for component in components
    }
    return Capacity(
        limit=_resource(bound.limit for bound in bounds),
        padding=_resource(bound.padding for bound in bounds),
        max_instances=max_instances,
        needs=needs,
    )


@dataclass(frozen=True, slots=True)
class _Bound:
    """One resource: its `name` in keys, the limit and where that is from, and what is asked of it."""

    name: str
    asked: Mapping[str, float]
    default: float
    limit: float
    source: str
    padding: float

    @property
    def unit(self) -> str:
        return "cores" if self.name == "cpu" else "bytes"

    def check(self, component: str, least: float) -> None:
        need = self.asked.get(component, self.default)
        where = f"component {component!r} requests {need} {self.unit} of {self.name} per instance"
        if need < least:
            msg = (
                f"{where}, below the minimum of {least} {self.unit}; raise its entry in "
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


def _bounds(wanted: ResourceMap, defaults: CapacityDefaults, max_instances: int) -> list[_Bound]:
    percentage = defaults.padding_percentage if wanted.padding_percentage is None else wanted.padding_percentage
    bounds: list[_Bound] = []
    for name, asked, default, container, hint, padding, least_padding in zip(
        ("cpu", "ram", "disk"),
        (wanted.cpu, wanted.ram_bytes, wanted.disk_bytes),
        defaults.instance.amounts(),
        wanted.container.amounts(),
        wanted.hint.amounts(),
        wanted.padding.amounts(),
        defaults.padding.amounts(),
        strict=True,
    ):
        limit, source = _limit(name, container, hint, default, max_instances)
        part = limit * percentage / 100
        bounds.append(
            _Bound(
                name,
                asked,
                default,
                limit,
                source,
                max(least_padding if padding is None else padding, part if name == "cpu" else -int(-part // 1)),
            )
        )
    return bounds


def _limit(
    name: str, container: float | None, hint: float | None, default: float, max_instances: int
) -> tuple[float, str]:
    """The limit of a resource and where it is from."""
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
