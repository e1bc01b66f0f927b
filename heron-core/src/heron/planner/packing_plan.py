"""The packing plan: which instance runs in which container, with which resources."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

__all__ = ["CPU_ROUNDING", "NO_RESOURCE", "ContainerPlan", "InstancePlan", "PackingPlan", "Resource"]

CPU_ROUNDING: Final = 1e-9
"""Sums of cores differ by the order of adding; what is over by less than this is not over."""


@dataclass(frozen=True, slots=True)
class Resource:
    """An amount of machine: cores, bytes of memory, bytes of disk."""

    cpu: float
    ram_bytes: int
    disk_bytes: int

    def __add__(self, other: Resource) -> Resource:
        return Resource(self.cpu + other.cpu, self.ram_bytes + other.ram_bytes, self.disk_bytes + other.disk_bytes)

    def __sub__(self, other: Resource) -> Resource:
        return Resource(self.cpu - other.cpu, self.ram_bytes - other.ram_bytes, self.disk_bytes - other.disk_bytes)

    def amounts(self) -> tuple[float, int, int]:
        """Cores, bytes of memory, bytes of disk."""
        return self.cpu, self.ram_bytes, self.disk_bytes


NO_RESOURCE: Final = Resource(0.0, 0, 0)


@dataclass(frozen=True, slots=True)
class InstancePlan:
    """One task: its component, its id (from 1, unique in the topology, never reused), its index (from 0)."""

    component: str
    task_id: int
    component_index: int
    resource: Resource


@dataclass(frozen=True, slots=True)
class ContainerPlan:
    """One container (ids from 1; container 0 is the topology manager's and stands in no plan)."""

    container_id: int
    instances: tuple[InstancePlan, ...]
    required: Resource


@dataclass(frozen=True, slots=True)
class PackingPlan:
    """Every container and what runs in it.

    `last_task_id` is the highest task id that was ever given in this topology, which a plan that has lost instances
    no longer shows otherwise; 0 stands for the highest one in the plan.
    """

    id: str
    containers: tuple[ContainerPlan, ...]
    last_task_id: int = 0

    def instances(self) -> Iterator[tuple[int, InstancePlan]]:
        """Every instance with the id of its container, in plan order."""
        for container in self.containers:
            for instance in container.instances:
                yield container.container_id, instance

    def next_task_id(self) -> int:
        """The first task id that was never given."""
        return max(self.last_task_id, *(instance.task_id for _, instance in self.instances()), 0) + 1

    def parallelism(self) -> dict[str, int]:
        """The number of instances of each component that has some, in plan order."""
        counts: dict[str, int] = {}
        for _, instance in self.instances():
            counts[instance.component] = counts.get(instance.component, 0) + 1
        return counts

    def container(self, container_id: int) -> ContainerPlan:
        """The container of that id; KeyError when there is none."""
        for container in self.containers:
            if container.container_id == container_id:
                return container
        raise KeyError(container_id)
