"""Adds instances to a draft: each to the container with room that has the fewest instances."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from heron_packing_kit.plan_draft import PlanDraft
from heron_packing_roundrobin.rule import Demand
from heron_packing_roundrobin.sizing import Sizing

__all__ = ["Rebalance"]


class Rebalance:
    """Balances the number of instances in the containers of one draft."""

    __slots__ = ("_demands", "_draft", "_queue", "_sizing")

    def __init__(self, draft: PlanDraft, sizing: Sizing) -> None:
        self._draft = draft
        self._sizing = sizing
        self._queue: list[tuple[int, int]] = []  # number of instances, container id: a heap
        self._demands: dict[int, tuple[Demand, ...]] = {}
        for container_id in draft.container_ids():
            instances = draft.instances(container_id)
            heapq.heappush(self._queue, (len(instances), container_id))
            self._demands[container_id] = sizing.demands(instance.component for instance in instances)

    def open_containers(self, count: int) -> None:
        """Open empty containers until there are `count`."""
        while len(self._demands) < count:
            heapq.heappush(self._queue, (0, self._open()))

    def grow(self, additions: Sequence[tuple[str, int]]) -> None:
        """Place each new (component, index); open another container if no container has room."""
        full: list[tuple[int, int]] = []
        previous = ""
        for component, index in additions:
            if component != previous:  # a container without room for one component may have room for the next
                for entry in full:
                    heapq.heappush(self._queue, entry)
                full, previous = [], component
            container_id = self._with_room(component, full)
            self._draft.place(component, index, container_id)
            self._demands[container_id] = self._sizing.with_one_more(self._demands[container_id], component)
            heapq.heappush(self._queue, (len(self._draft.instances(container_id)), container_id))

    def _with_room(self, component: str, full: list[tuple[int, int]]) -> int:
        while self._queue:
            entry = heapq.heappop(self._queue)
            container_id = entry[1]
            if self._sizing.fits(self._sizing.with_one_more(self._demands[container_id], component), component):
                return container_id
            full.append(entry)
        return self._open()

    def _open(self) -> int:
        container_id = self._draft.open()
        self._demands[container_id] = self._sizing.demands(())
        return container_id
