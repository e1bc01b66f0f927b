"""Models of the repacking of Heron's own packings: the reference for `PackingContract`.

Heron's round robin deals all instances again: nearly every task moves, and each gets a new id. First fit decreasing and
the resource-compliant round robin remove the surplus, container by container in an order of scores. They never move the
other instances, and the model leaves out the instances that they add.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from heron.api.definition import TopologyDefinition
from heron.planner.packing_plan import PackingPlan

__all__ = ["TaskPlacement", "disturbed", "placements", "repacked_round_robin", "shrunk_by_score"]


class TaskPlacement(NamedTuple):
    """A task and its container. A change of any of these fields stops the task and starts another."""

    task_id: int
    component: str
    component_index: int
    container_id: int


def placements(plan: PackingPlan) -> frozenset[TaskPlacement]:
    """Return every task of the plan."""
    return frozenset(
        TaskPlacement(each.task_id, each.component, each.component_index, container_id)
        for container_id, each in plan.instances()
    )


def disturbed(before: PackingPlan, after: Iterable[TaskPlacement]) -> int:
    """Return the number of tasks that ran before and do not continue in the same place."""
    return len(placements(before) - frozenset(after))


def repacked_round_robin(
    before: PackingPlan, topology: TopologyDefinition, parallelism: Mapping[str, int]
) -> frozenset[TaskPlacement]:
    """Return the result of Heron's ``RoundRobinPacking.repack``, which keeps the ratio of instances to containers.

    Heron starts with the components that need most memory; this model keeps the order of the plan.
    """
    submitted = sum(component.parallelism for component in topology.components)
    containers = topology.config.get("topology.stmgrs", 1)
    assert isinstance(containers, int)
    total = sum(parallelism.values())
    count = min(total, -(-total * containers // submitted))
    deal = [(component, index) for component in before.parallelism() for index in range(parallelism[component])]
    return frozenset(
        TaskPlacement(at + 1, component, index, at % count + 1) for at, (component, index) in enumerate(deal)
    )


def shrunk_by_score(before: PackingPlan, parallelism: Mapping[str, int]) -> frozenset[TaskPlacement]:
    """Return the tasks that remain after the scale-down of Heron's other packings.

    Each surplus instance leaves the first container in this order: containers with only that component, the fewest
    instances, the largest share of the component, the highest id.
    """
    containers = {each.container_id: list(each.instances) for each in before.containers}
    for component, count in before.parallelism().items():
        for _ in range(count - parallelism[component]):
            scores = []
            for container_id, instances in containers.items():
                matching = sum(1 for each in instances if each.component == component)
                if matching:
                    share = 1000 * matching // len(instances)
                    scores.append((matching < len(instances), len(instances), -share, -container_id))
            chosen = containers[-min(scores)[3]]
            chosen.remove(next(each for each in chosen if each.component == component))
    return frozenset(
        TaskPlacement(each.task_id, each.component, each.component_index, container_id)
        for container_id, instances in containers.items()
        for each in instances
    )
