"""A draft of a packing plan, for every packing: it assigns task ids and container ids.

An instance that stays in the plan keeps its task id, component index, container and resources. A component loses its
highest indexes first, so the indexes stay 0 … n-1 (the index decides the key groups). A new task id is higher than all
earlier ids of the topology. An empty container is removed. A new container gets the lowest free id.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from heron.planner.packing_plan import ContainerPlan, PackingPlan, Resource, fingerprint

__all__ = ["DraftInstance", "PlanDraft", "SizeContainer", "fingerprint"]


class DraftInstance(NamedTuple):
    """An instance in a draft; `resource` is that of the current plan, or None for a new instance."""

    component: str
    task_id: int
    component_index: int
    resource: Resource | None


class SizeContainer(Protocol):
    """Assigns resources to a container and its instances."""

    def __call__(self, container_id: int, instances: Sequence[DraftInstance], /) -> ContainerPlan:
        """The container with these instances, in order of task id; raises PackingError if they do not fit."""
        ...


class PlanDraft:
    """A change of a plan, or a new plan. Call `shrink`, then `open` and `place`, then `plan`."""

    __slots__ = ("_before", "_changed", "_free_id", "_instances", "_next_task_id")

    def __init__(self, current: PackingPlan | None = None) -> None:
        self._before = {each.container_id: each for each in current.containers} if current else {}
        self._instances = {
            container.container_id: [
                DraftInstance(each.component, each.task_id, each.component_index, each.resource)
                for each in container.instances
            ]
            for container in self._before.values()
        }
        self._next_task_id = current.next_task_id() if current else 1
        self._changed: set[int] = set()
        self._free_id = 1  # no lower id is free, because a draft never closes a container

    def container_ids(self) -> list[int]:
        """The ids of all containers, including empty ones, in ascending order."""
        return sorted(self._instances)

    def instances(self, container_id: int) -> Sequence[DraftInstance]:
        """The instances of a container."""
        return self._instances[container_id]

    def shrink(self, parallelism: Mapping[str, int]) -> None:
        """Removes every instance whose component index is not below its component's parallelism."""
        for container_id, instances in self._instances.items():
            kept = [each for each in instances if each.component_index < parallelism[each.component]]
            if len(kept) < len(instances):
                self._instances[container_id] = kept
                self._changed.add(container_id)

    def open(self) -> int:
        """Opens an empty container with the lowest free id and returns the id."""
        while self._free_id in self._instances:
            self._free_id += 1
        self._instances[self._free_id] = []
        return self._free_id

    def place(self, component: str, component_index: int, container_id: int) -> None:
        """Puts a new instance into the container, under the next task id."""
        self._instances[container_id].append(DraftInstance(component, self._next_task_id, component_index, None))
        self._changed.add(container_id)
        self._next_task_id += 1

    def move(self, instance: DraftInstance, container_id: int, to: int, *, keeps_id: bool) -> None:
        """Moves an instance from one container to another; it gets the next task id unless it keeps its own."""
        self._instances[container_id] = [each for each in self._instances[container_id] if each != instance]
        moved = instance if keeps_id else instance._replace(task_id=self._next_task_id)
        self._next_task_id += not keeps_id
        self._instances[to].append(moved)
        self._changed.update((container_id, to))

    def plan(self, size: SizeContainer) -> PackingPlan:
        """The containers with instances, by id. An unchanged container is the same as in the current plan.

        Raises:
            PackingError: as `size` does.
        """
        containers = tuple(
            size(container_id, sorted(self._instances[container_id], key=_by_task))
            if container_id in self._changed
            else self._before[container_id]
            for container_id in self.container_ids()
            if self._instances[container_id]
        )
        last_task_id = self._next_task_id - 1
        return PackingPlan(fingerprint(containers, last_task_id), containers, last_task_id)


def _by_task(instance: DraftInstance) -> int:
    return instance.task_id
