"""Gives a packing plan a certain number of containers, by moving the fewest instances. Pure, for every packing.

A running task cannot move. So an instance that moves gets a new task id, with its component index: the update starts a
task in the other container and removes the former one. A spout without checkpoints has a position that only its task
knows, so its instances stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from heron.api.config import takes_checkpoints
from heron.api.definition import ComponentKind, TopologyDefinition
from heron.errors import PackingError
from heron.planner.packing_plan import PackingPlan
from heron_packing_kit.plan_draft import DraftInstance, PlanDraft, SizeContainer

__all__ = ["FitsContainer", "in_containers"]


class FitsContainer(Protocol):
    """Says whether a container has room for instances."""

    def __call__(self, instances: Sequence[DraftInstance], /) -> bool:
        """Whether a container can have these instances."""
        ...


def in_containers(
    current: PackingPlan,
    repacked: PackingPlan,
    topology: TopologyDefinition,
    containers: int,
    size: SizeContainer,
    fits: FitsContainer,
) -> PackingPlan:
    """The plan `repacked` with this number of containers. It stays as it is if it has that number.

    `current` is the plan that runs, and `repacked` the one that `repack` made from it. Fewer containers: those with the
    fewest running instances are emptied. More containers: each new one gets instances of the fullest ones.

    Raises:
        PackingError: when the number is below 1 or above the number of instances, when the instances do not fit, or
            when instances of spouts would have to move that cannot.
    """
    total = sum(repacked.parallelism().values())
    if containers < 1:
        msg = f"container number {containers} is not an integer of 1 or more; raise it"
        raise PackingError(msg)
    if containers > total:
        msg = f"container number {containers} exceeds the number of instances, {total}; lower it to {total}"
        raise PackingError(msg)
    if containers == len(repacked.containers):
        return repacked
    moves = _Moves(current, PlanDraft(repacked), topology, fits)
    moves.close_down_to(containers)
    moves.open_up_to(containers)
    return moves.draft.plan(size)


class _Moves:
    """A draft, and the moves within it."""

    def __init__(
        self, current: PackingPlan, draft: PlanDraft, topology: TopologyDefinition, fits: FitsContainer
    ) -> None:
        self.draft = draft
        self._running = {each.task_id for _, each in current.instances()}
        spouts = (each.name for each in topology.components if each.kind is ComponentKind.SPOUT)
        self._staying = frozenset(() if takes_checkpoints(topology.config) else spouts)
        self._fits = fits

    def close_down_to(self, count: int) -> None:
        ids = self.draft.container_ids()
        while len(ids) > count:
            closed = min(ids, key=self._cost)
            ids.remove(closed)
            for instance in tuple(self.draft.instances(closed)):
                if self._stays(instance):
                    msg = (
                        f"container number {count}: container {closed} would be removed, but task {instance.task_id} "
                        f"of spout {instance.component!r} cannot move without checkpoints; give {len(ids) + 1} or more"
                    )
                    raise PackingError(msg)
                roomy = [each for each in ids if self._fits([*self.draft.instances(each), instance])]
                if not roomy:
                    msg = (
                        f"container number {count}: no container has room for task {instance.task_id} of "
                        f"{instance.component!r}; give {len(ids) + 1} or more, or larger containers"
                    )
                    raise PackingError(msg)
                self._move(instance, closed, min(roomy, key=self._filling))

    def open_up_to(self, count: int) -> None:
        sources = self.draft.container_ids()
        opened = [self.draft.open() for _ in range(count - len(sources))]
        while opened and sources:
            fullest, emptiest = max(sources, key=self._filling), min(opened, key=self._filling)
            if len(self.draft.instances(fullest)) - len(self.draft.instances(emptiest)) <= 1:
                break
            chosen = self._choose(fullest, emptiest)
            if chosen is None:
                sources.remove(fullest)
            else:
                self._move(chosen, fullest, emptiest)
        if empty := [each for each in opened if not self.draft.instances(each)]:
            msg = (
                f"container number {count}: {len(empty)} of the containers get no instance, because spouts cannot move "
                f"without checkpoints; give {count - len(empty)} or less"
            )
            raise PackingError(msg)

    def _choose(self, container_id: int, to: int) -> DraftInstance | None:
        """The instance that moves: a new one if there is any, of the component of which `to` has the fewest."""
        there, here = self.draft.instances(to), self.draft.instances(container_id)

        def order(instance: DraftInstance) -> tuple[bool, int, int, int]:
            components = [[each.component for each in place].count(instance.component) for place in (there, here)]
            return instance.task_id in self._running, components[0], -components[1], -instance.task_id

        movable = [each for each in here if not self._stays(each) and self._fits([*there, each])]
        return min(movable, key=order, default=None)

    def _move(self, instance: DraftInstance, container_id: int, to: int) -> None:
        self.draft.move(instance, container_id, to, keeps_id=instance.task_id not in self._running)

    def _stays(self, instance: DraftInstance) -> bool:
        return instance.component in self._staying and instance.task_id in self._running

    def _filling(self, container_id: int) -> tuple[int, int]:
        return len(self.draft.instances(container_id)), container_id

    def _cost(self, container_id: int) -> tuple[int, int, int]:
        instances = self.draft.instances(container_id)
        staying = sum(map(self._stays, instances))
        return staying, sum(each.task_id in self._running for each in instances), -container_id
