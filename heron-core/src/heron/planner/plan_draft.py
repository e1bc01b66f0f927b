"""A packing plan while it is made or changed: the bookkeeping that every packing needs.

An instance that stays keeps its task id, component index, container and resources. Components shrink from their highest
index down, so indexes stay 0 … n-1 (key groups are divided by index). New task ids follow the highest that was ever
assigned. An empty container is removed, and its id is the first to be used again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec
from xxhash import xxh3_64_hexdigest

from heron.planner.packing_plan import ContainerPlan, PackingPlan, Resource

__all__ = ["Member", "PlanDraft", "SizeContainer", "fingerprint"]


class Member(NamedTuple):
    """An instance in a container, with its resources in the present plan; None for a new instance."""

    component: str
    task_id: int
    component_index: int
    resource: Resource | None


class SizeContainer(Protocol):
    """Assigns resources to a container and its instances."""

    def __call__(self, container_id: int, members: Sequence[Member], /) -> ContainerPlan:
        """The container with these members, in order of task id; raises PackingError if they do not fit."""
        ...


class PlanDraft:
    """One change of one plan, or a new plan: `shrink`, then `open` and `place`, then `plan`."""

    __slots__ = ("_before", "_changed", "_free_id", "_members", "_next_task_id")

    def __init__(self, current: PackingPlan | None = None) -> None:
        self._before = {each.container_id: each for each in current.containers} if current else {}
        self._members = {
            container.container_id: [
                Member(each.component, each.task_id, each.component_index, each.resource)
                for each in container.instances
            ]
            for container in self._before.values()
        }
        self._next_task_id = current.next_task_id() if current else 1
        self._changed: set[int] = set()
        self._free_id = 1  # containers are opened here and never closed, so no lower id is free

    def container_ids(self) -> list[int]:
        """The present containers, also empty ones, in ascending order."""
        return sorted(self._members)

    def members(self, container_id: int) -> Sequence[Member]:
        """The present members of the container."""
        return self._members[container_id]

    def shrink(self, parallelism: Mapping[str, int]) -> None:
        """Removes every instance whose component index is not below its component's parallelism."""
        for container_id, members in self._members.items():
            kept = [each for each in members if each.component_index < parallelism[each.component]]
            if len(kept) < len(members):
                self._members[container_id] = kept
                self._changed.add(container_id)

    def open(self) -> int:
        """Opens an empty container; its id is the lowest that is free."""
        while self._free_id in self._members:
            self._free_id += 1
        self._members[self._free_id] = []
        return self._free_id

    def place(self, component: str, component_index: int, container_id: int) -> None:
        """Puts a new instance into the container, under the next task id."""
        self._members[container_id].append(Member(component, self._next_task_id, component_index, None))
        self._changed.add(container_id)
        self._next_task_id += 1

    def plan(self, size: SizeContainer) -> PackingPlan:
        """The containers that have instances, by id; unchanged containers are exactly as before.

        Raises:
            PackingError: as `size` does.
        """
        containers = tuple(
            size(container_id, sorted(self._members[container_id], key=_by_task))
            if container_id in self._changed
            else self._before[container_id]
            for container_id in self.container_ids()
            if self._members[container_id]
        )
        last_task_id = self._next_task_id - 1
        return PackingPlan(fingerprint(containers, last_task_id), containers, last_task_id)


def fingerprint(containers: tuple[ContainerPlan, ...], last_task_id: int) -> str:
    """The id of a packing plan with this content: 16 hexadecimal digits, the same for the same content."""
    return xxh3_64_hexdigest(msgspec.json.encode([containers, last_task_id], order="deterministic"))


def _by_task(member: Member) -> int:
    return member.task_id
