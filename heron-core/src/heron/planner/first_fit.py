"""Finds the first container with room, in time that grows with the logarithm of their number.

A tree over the containers holds, at each node, the most of each resource that any container below it has free; a
subtree where one of them is too little for an instance is passed over as a whole.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from heron.planner.capacity import Capacity
from heron.planner.packing_plan import CPU_ROUNDING, Resource
from heron.planner.plan_draft import PlanDraft

__all__ = ["Fitting"]

_Free: TypeAlias = tuple[float, int, int, int]  # cores, bytes of memory, bytes of disk, instances

_NOTHING: Final[_Free] = (-1.0, -1, -1, -1)


class Fitting:
    """Places the new instances of a draft, at most `additions` of them, each where it fits.

    Containers have positions: those of the draft by their id, then those opened here, in order of opening.
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
            members = draft.members(container_id)
            self._add(container_id, capacity.room - capacity.used(members), capacity.max_instances - len(members))

    def containers(self) -> int:
        """How many containers there are."""
        return len(self._ids)

    def free(self) -> list[Resource]:
        """What each container has free, by position; below zero where the present plan gives more than there is."""
        return [Resource(*self._tree[self._leaves + at][:3]) for at in range(len(self._ids))]

    def open(self) -> int:
        """Opens an empty container; returns its position."""
        self._add(self._draft.open(), self._capacity.room, self._capacity.max_instances)
        return len(self._ids) - 1

    def place(self, component: str, component_index: int, start: int = 0) -> int:
        """Puts a new instance into the first container that has room, at or after position `start` and then from 0.

        Opens a container where none has room. Returns the position that was taken.
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
        """The first position from `start` on below this node (of positions `low` to `low + width`) or -1."""
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
