"""Changes a packing plan: takes the newest instances away, opens containers, puts new ones where the fewest are.

An instance that stays keeps its task id, its component index and its container. Components shrink from their highest
index down, so that indexes stay 0 … n-1 (key groups are divided by index), and task ids go on from the highest ever
given.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence

from heron.planner.packing_plan import ContainerPlan, PackingPlan
from heron_packing_roundrobin.rule import Demand
from heron_packing_roundrobin.sizing import Sizing

__all__ = ["Rebalance"]


class _Bin:
    """A container while it changes."""

    __slots__ = ("changed", "container_id", "demands", "members")

    def __init__(
        self, container_id: int, members: list[tuple[str, int, int]], demands: tuple[Demand, ...], *, changed: bool
    ) -> None:
        self.container_id = container_id
        self.members = members
        self.demands = demands
        self.changed = changed


class Rebalance:
    """One change of one plan: `shrink`, then `open_containers`, then `grow`, then `containers`."""

    __slots__ = ("_before", "_bins", "_free_id", "_next_task_id", "_sizing")

    def __init__(self, current: PackingPlan, sizing: Sizing) -> None:
        self._sizing = sizing
        self._before = {container.container_id: container for container in current.containers}
        self._next_task_id = current.next_task_id()
        self._free_id = 1  # no lower id is free, as containers are opened here and never closed
        self._bins = {
            container.container_id: self._bin(
                container.container_id,
                [(instance.component, instance.task_id, instance.component_index) for instance in container.instances],
                changed=False,
            )
            for container in current.containers
        }

    def shrink(self, parallelism: Mapping[str, int]) -> None:
        """Takes away every instance whose index is not below its component's parallelism."""
        for bin_ in tuple(self._bins.values()):
            kept = [member for member in bin_.members if member[2] < parallelism[member[0]]]
            if len(kept) < len(bin_.members):
                self._bins[bin_.container_id] = self._bin(bin_.container_id, kept, changed=True)

    def open_containers(self, count: int) -> None:
        """Opens empty containers until there are `count`; the lowest free ids are taken."""
        while len(self._bins) < count:
            self._open()

    def grow(self, additions: Sequence[tuple[str, int]]) -> int:
        """Places each new (component, index) in the container with the fewest instances that has room for it.

        Opens one more where none has. Returns the highest task id ever given.
        """
        queue = [(len(bin_.members), container_id) for container_id, bin_ in self._bins.items()]
        heapq.heapify(queue)
        full: list[tuple[int, int]] = []
        previous = ""
        for component, index in additions:
            if component != previous:  # what was full for one component may have room for the next
                for entry in full:
                    heapq.heappush(queue, entry)
                full, previous = [], component
            chosen = self._with_room(component, queue, full)
            chosen.members.append((component, self._next_task_id, index))
            chosen.demands = self._sizing.with_one_more(chosen.demands, component)
            chosen.changed = True
            heapq.heappush(queue, (len(chosen.members), chosen.container_id))
            self._next_task_id += 1
        return self._next_task_id - 1

    def containers(self) -> tuple[ContainerPlan, ...]:
        """The containers that have instances, by id; those without a change exactly as they were.

        Raises:
            PackingError: when the instances of one do not fit.
        """
        return tuple(
            self._sizing.container(bin_.container_id, bin_.members) if bin_.changed else self._before[bin_.container_id]
            for bin_ in sorted(self._bins.values(), key=lambda each: each.container_id)
            if bin_.members
        )

    def _with_room(self, component: str, queue: list[tuple[int, int]], full: list[tuple[int, int]]) -> _Bin:
        while queue:
            entry = heapq.heappop(queue)
            bin_ = self._bins[entry[1]]
            if self._sizing.fits(self._sizing.with_one_more(bin_.demands, component), component):
                return bin_
            full.append(entry)
        return self._open()

    def _open(self) -> _Bin:
        while self._free_id in self._bins:
            self._free_id += 1
        bin_ = self._bins[self._free_id] = self._bin(self._free_id, [], changed=True)
        return bin_

    def _bin(self, container_id: int, members: list[tuple[str, int, int]], *, changed: bool) -> _Bin:
        demands = self._sizing.demands(component for component, _, _ in members)
        return _Bin(container_id, members, demands, changed=changed)
