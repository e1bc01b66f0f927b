"""How much Heron's own packings disturb when the parallelism changes, as a yardstick for `PackingContract`.

Pure models of what is documented of them. The round robin deals everything anew, so nearly every task moves, and all
get new ids. First fit decreasing and the resource-compliant round robin take the surplus away, container by container
in an order of scores, and never move what is left, so what they add need not be modelled.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from heron.api.definition import TopologyDefinition
from heron.planner.packing_plan import PackingPlan

__all__ = ["Placed", "dealt_anew", "disturbed", "placed", "shrunk_by_score"]


class Placed(NamedTuple):
    """A task and where it runs; a task that changes any of these stops and starts."""

    task_id: int
    component: str
    component_index: int
    container_id: int


def placed(plan: PackingPlan) -> frozenset[Placed]:
    """Every task of the plan."""
    return frozenset(
        Placed(each.task_id, each.component, each.component_index, container_id)
        for container_id, each in plan.instances()
    )


def disturbed(before: PackingPlan, after: Iterable[Placed]) -> int:
    """The number of tasks that ran before and do not run on in the same place."""
    return len(placed(before) - frozenset(after))


def dealt_anew(before: PackingPlan, topology: TopologyDefinition, parallelism: Mapping[str, int]) -> frozenset[Placed]:
    """Heron's ``RoundRobinPacking.repack``: the ratio of instances to containers stays, everything is dealt again.

    Components with the largest entry in the memory map come first; here those of the plan, in its order.
    """
    submitted = sum(component.parallelism for component in topology.components)
    containers = topology.config.get("topology.stmgrs", 1)
    assert isinstance(containers, int)
    total = sum(parallelism.values())
    count = min(total, -(-total * containers // submitted))
    deal = [(component, index) for component in before.parallelism() for index in range(parallelism[component])]
    return frozenset(Placed(at + 1, component, index, at % count + 1) for at, (component, index) in enumerate(deal))


def shrunk_by_score(before: PackingPlan, parallelism: Mapping[str, int]) -> frozenset[Placed]:
    """The scale-down of Heron's other packings: what is left of the plan.

    Each surplus instance is taken from the container that comes first by: holding only that component, fewest
    instances, largest share of the component, highest id.
    """
    containers = {each.container_id: list(each.instances) for each in before.containers}
    for component, count in before.parallelism().items():
        for _ in range(count - parallelism[component]):
            scores = []
            for container_id, instances in containers.items():
                of_it = sum(1 for each in instances if each.component == component)
                if of_it:
                    share = 1000 * of_it // len(instances)
                    scores.append((of_it < len(instances), len(instances), -share, -container_id))
            chosen = containers[-min(scores)[3]]
            chosen.remove(next(each for each in chosen if each.component == component))
    return frozenset(
        Placed(each.task_id, each.component, each.component_index, container_id)
        for container_id, instances in containers.items()
        for each in instances
    )
