"""The models of the repacking of Heron's packings, which are the reference for other packings."""

from __future__ import annotations

from heron.planner.packing_plan import ContainerPlan, InstancePlan, PackingPlan, Resource
from heron_testing.contracts.packing import packable_topology
from heron_testing.contracts.parts.packing_reference import (
    TaskPlacement,
    disturbed,
    placements,
    repacked_round_robin,
    shrunk_by_score,
)

_SIZE = Resource(1.0, 1, 1)


def _plan(*containers: list[tuple[str, int, int]]) -> PackingPlan:
    return PackingPlan(
        "p",
        tuple(
            ContainerPlan(at, tuple(InstancePlan(*each, _SIZE) for each in instances), _SIZE)
            for at, instances in enumerate(containers, 1)
        ),
    )


def test_nothing_is_disturbed_by_the_same_plan() -> None:
    """Another container, id or index disturbs a task."""
    plan = _plan([("a", 1, 0)], [("a", 2, 1)])
    assert disturbed(plan, placements(plan)) == 0
    assert disturbed(plan, [TaskPlacement(1, "a", 0, 1), TaskPlacement(2, "a", 1, 1)]) == 1
    assert disturbed(plan, [TaskPlacement(1, "a", 0, 1), TaskPlacement(3, "a", 1, 2)]) == 1


def test_round_robin_gives_new_ids_to_later_tasks() -> None:
    """One more instance of the first component changes the ids of all tasks of the second."""
    plan = _plan([("a", 1, 0), ("b", 3, 0)], [("a", 2, 1), ("b", 4, 1)])
    topology = packable_topology({"a": 2, "b": 2}, containers=2)
    assert repacked_round_robin(plan, topology, {"a": 2, "b": 2}) == placements(plan)
    assert disturbed(plan, repacked_round_robin(plan, topology, {"a": 3, "b": 2})) == 2


def test_the_scores_empty_containers_first() -> None:
    """The order is: only that component, the fewest instances, the largest share, the highest id."""
    plan = _plan([("a", 1, 0), ("b", 2, 0)], [("a", 3, 1), ("a", 4, 2)], [("a", 5, 3)], [("a", 6, 4)])
    for count, gone in ((4, {6}), (3, {6, 5}), (2, {6, 5, 3}), (1, {6, 5, 4, 3})):
        left = {each.task_id for each in shrunk_by_score(plan, {"a": count, "b": 1})}
        assert {1, 2, 3, 4, 5, 6} - left == gone
