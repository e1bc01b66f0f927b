"""First fit: finds the first container with room for an instance, in logarithmic time.

The leaves of a tree are the free resources of the containers. Each inner node has, for each resource, the maximum of
its children. A search skips a subtree if one of these maxima is too small for the instance.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from heron.planner.packing_plan import CPU_ROUNDING, Resource
from heron_packing_kit.capacity import Capacity
from heron_packing_kit.plan_draft import PlanDraft

__all__ = ["FirstFit"]

_Free: TypeAlias = tuple[float, int, int, int]  # cores, bytes of memory, bytes of disk, instances

_NOTHING: Final[_Free] = (-1.0, -1, -1, -1)


class FirstFit:
    """Places new instances, at most `additions`, into the containers of a draft.

    Each container has a position: first the containers of the draft by id, then the opened containers in the order of
    opening.
    """

    __slots__ = ("_capacity", "_draft", "_ids", "_leaves", "_tree")

    def __init__(self, draft: PlanDraft, capacity: Capacity, additions: int) -> None:
        self._draft = draft
        self._capacity = capacity
        self._ids: list[int] = []
        containers = draft.container_ids()
        self._leaves = 1 << (len(containers) + additions).bit_length()
        self._tree = [_NOTHING] * (2 * self._leaves)
        for container_id in containers:
            instances = draft.instances(container_id)
            self._add(container_id, capacity.room - capacity.used(instances), capacity.max_instances - len(instances))

    def containers(self) -> int:
        """The number of containers."""
        return len(self._ids)

    def free(self) -> list[Resource]:
        """The free resources of each container, by position; negative if the current plan exceeds the capacity."""
        return [Resource(*self._tree[self._leaves + at][:3]) for at in range(len(self._ids))]

    def open(self) -> int:
        """Opens an empty container and returns its position."""
        self._add(self._draft.open(), self._capacity.room, self._capacity.max_instances)
        return len(self._ids) - 1

    def place(self, component: str, component_index: int, start: int = 0) -> int:
        """Puts a new instance into the first container with room and returns the position of that container.

        The search begins at `start` and continues from 0. If no container has room, a new one is opened.
        """
        need = self._capacity.needs[component]
        position = self._first(1, 0, self._leaves, start, need)
        if position < 0 and start:
            position = self._first(1, 0, self._leaves, 0, need)
        if position < 0:
            position = self.open()
        self._draft.place(component, component_index, self._ids[position])
        cpu, ram_bytes, disk_bytes, instances = self._tree[self._leaves + position]
        self._set(position, (cpu - need.cpu, ram_bytes - need.ram_bytes, disk_bytes - need.disk_bytes, instances - 1))
        return position

    def _first(self, node: int, low: int, width: int, start: int, need: Resource) -> int:
        """The first position with room, from `start` on, below this node (`low` to ``low + width``); -1 without one."""
        cpu, ram_bytes, disk_bytes, instances = self._tree[node]
        if (
            low + width <= start
            or instances < 1
            or cpu + CPU_ROUNDING < need.cpu
            or ram_bytes < need.ram_bytes
            or disk_bytes < need.disk_bytes
        ):
            return -1
        if width == 1:
            return low
        width //= 2
        found = self._first(2 * node, low, width, start, need)
        return found if found >= 0 else self._first(2 * node + 1, low + width, width, start, need)

    def _add(self, container_id: int, free: Resource, instances: int) -> None:
        self._ids.append(container_id)
        self._set(len(self._ids) - 1, (*free.amounts(), instances))

    def _set(self, position: int, free: _Free) -> None:
        tree, node = self._tree, self._leaves + position
        tree[node] = free
        while node > 1:
            node //= 2
            left, right = tree[2 * node], tree[2 * node + 1]
            tree[node] = (
                max(left[0], right[0]),
                max(left[1], right[1]),
                max(left[2], right[2]),
                max(left[3], right[3]),
            )
