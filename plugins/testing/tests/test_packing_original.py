"""The models of Heron's own repacking, by which other packings are judged."""

from __future__ import annotations

from heron.planner.packing_plan import ContainerPlan, InstancePlan, PackingPlan, Resource
from heron_testing.contracts.packing import packable_topology
from heron_testing.contracts.packing_original import Placed, dealt_anew, disturbed, placed, shrunk_by_score

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
    """And every task by another container, id or index."""
    plan = _plan([("a", 1, 0)], [("a", 2, 1)])
    assert disturbed(plan, placed(plan)) == 0
    assert disturbed(plan, [Placed(1, "a", 0, 1), Placed(2, "a", 1, 1)]) == 1
    assert disturbed(plan, [Placed(1, "a", 0, 1), Placed(3, "a", 1, 2)]) == 1


def test_the_deal_anew_gives_new_ids_to_what_follows() -> None:
    """One more instance of the first component, and all of the second are tasks of another id."""
    plan = _plan([("a", 1, 0), ("b", 3, 0)], [("a", 2, 1), ("b", 4, 1)])
    topology = packable_topology({"a": 2, "b": 2}, containers=2)
    assert dealt_anew(plan, topology, {"a": 2, "b": 2}) == placed(plan)
    assert disturbed(plan, dealt_anew(plan, topology, {"a": 3, "b": 2})) == 2


def test_the_scores_empty_containers_first() -> None:
    """Only that component, then the fewest instances, then the largest share, then the highest id."""
    plan = _plan([("a", 1, 0), ("b", 2, 0)], [("a", 3, 1), ("a", 4, 2)], [("a", 5, 3)], [("a", 6, 4)])
    for count, gone in ((4, {6}), (3, {6, 5}), (2, {6, 5, 3}), (1, {6, 5, 4, 3})):
        left = {each.task_id for each in shrunk_by_score(plan, {"a": count, "b": 1})}
        assert {1, 2, 3, 4, 5, 6} - left == gone
