"""Drafts of packing plans: task ids, container ids, and checked changes of parallelism."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from heron.errors import PackingError
from heron.planner.packing_plan import ContainerPlan, InstancePlan, PackingPlan, Resource
from heron_packing_kit.plan_change import check_parallelism, read_change
from heron_packing_kit.plan_draft import DraftInstance, PlanDraft, fingerprint
from heron_testing.contracts.packing import packable_topology

_OLD = Resource(1.0, 1024, 1024)
_NEW = Resource(2.0, 2048, 2048)


def _sized(container_id: int, instances: Sequence[DraftInstance]) -> ContainerPlan:
    plans = tuple(
        InstancePlan(each.component, each.task_id, each.component_index, each.resource or _NEW) for each in instances
    )
    return ContainerPlan(container_id, plans, _NEW)


def _plan(*containers: tuple[int, list[tuple[str, int, int]]], last_task_id: int = 0) -> PackingPlan:
    return PackingPlan(
        "p",
        tuple(
            ContainerPlan(container_id, tuple(InstancePlan(*each, _OLD) for each in instances), _OLD)
            for container_id, instances in containers
        ),
        last_task_id,
    )


def test_ids_of_a_new_plan_start_at_one() -> None:
    """Containers and tasks get their ids in the order of creation."""
    draft = PlanDraft()
    first, second = draft.open(), draft.open()
    for at, container_id in enumerate((first, second, first)):
        draft.place("words", at, container_id)
    plan = draft.plan(_sized)
    assert (first, second) == (1, 2)
    assert [(at, each.task_id) for at, each in plan.instances()] == [(1, 1), (1, 3), (2, 2)]
    assert plan.last_task_id == 3


def test_remaining_instances_keep_ids_and_resources() -> None:
    """A changed container keeps the resources of remaining instances; an unchanged container is the same object."""
    before = _plan((1, [("a", 1, 0), ("b", 3, 0)]), (2, [("a", 2, 1), ("b", 4, 1)]))
    draft = PlanDraft(before)
    draft.shrink({"a": 2, "b": 1})
    draft.place("a", 2, 1)
    plan = draft.plan(_sized)
    assert plan.container(1).instances == (
        InstancePlan("a", 1, 0, _OLD),
        InstancePlan("b", 3, 0, _OLD),
        InstancePlan("a", 5, 2, _NEW),
    )
    assert plan.container(2).instances == (InstancePlan("a", 2, 1, _OLD),)
    draft = PlanDraft(before)
    draft.place("a", 2, 1)
    assert draft.plan(_sized).container(2) is before.container(2)


def test_a_task_id_is_never_used_again() -> None:
    """This also holds when the instance with the highest id has left the plan."""
    draft = PlanDraft(_plan((1, [("a", 1, 0)]), last_task_id=9))
    draft.place("a", 1, 1)
    assert [each.task_id for _, each in draft.plan(_sized).instances()] == [1, 10]


def test_the_lowest_free_container_id_is_opened() -> None:
    """Ids have no gaps, because some schedulers count replicas. The plan omits empty containers."""
    draft = PlanDraft(_plan((2, [("a", 1, 0)]), (4, [("a", 2, 1)])))
    assert [draft.open() for _ in range(3)] == [1, 3, 5]
    draft.place("a", 2, 3)
    assert draft.container_ids() == [1, 2, 3, 4, 5]
    assert [each.container_id for each in draft.plan(_sized).containers] == [2, 3, 4]


def test_plans_with_equal_contents_have_equal_ids() -> None:
    """Two runs of one command make the same plan."""
    plans = []
    for _ in range(2):
        draft = PlanDraft()
        draft.place("a", 0, draft.open())
        plans.append(draft.plan(_sized))
    assert plans[0] == plans[1]


def test_a_change_lists_new_instances() -> None:
    """They are in the requested order. Omitted components do not change."""
    topology = packable_topology({"a": 1, "b": 1})
    plan = _plan((1, [("a", 1, 0), ("b", 2, 0), ("b", 3, 1)]))
    change = read_change(plan, topology, {"a": 3})
    assert (change.before, change.after) == ({"a": 1, "b": 2}, {"a": 3, "b": 2})
    assert change.additions(["b", "a"]) == [("a", 1), ("a", 2)]
    assert change
    assert not read_change(plan, topology, {"b": 2})
    assert read_change(plan, topology, {"b": 1}).additions(["a", "b"]) == []


@pytest.mark.parametrize(
    ("parallelism", "message"),
    [
        ({"c": 1}, r"no component 'c'.*; known: 'a'"),
        ({"a": 0}, r"component 'a': parallelism 0 is not an integer of 1 or more"),
        ({"a": True}, r"component 'a': parallelism True is not"),
        ({"a": "2"}, r"component 'a': parallelism '2' is not"),
    ],
)
def test_an_invalid_change_is_refused(parallelism: dict[str, int], message: str) -> None:
    """The message names the component and the value."""
    with pytest.raises(PackingError, match=message):
        read_change(_plan((1, [("a", 1, 0)])), packable_topology({"a": 1}), parallelism)


def test_a_change_of_a_plan_with_missing_indexes_is_refused() -> None:
    """A new index could equal an old one. Such a plan comes from an edit by hand or from a faulty packing."""
    with pytest.raises(PackingError, match=r"component 'a': has the indexes 0, 2, not each of 0 to 1 once"):
        read_change(_plan((1, [("a", 1, 0), ("a", 2, 2)])), packable_topology({"a": 2}), {"a": 3})


def test_a_topology_without_instances_is_refused() -> None:
    """The message names the topology, or the component without instances."""
    assert check_parallelism(packable_topology({"a": 2, "b": 3})) == 5
    with pytest.raises(PackingError, match="topology 'packed' has no components"):
        check_parallelism(packable_topology({}))
    with pytest.raises(PackingError, match="component 'b': parallelism 0"):
        check_parallelism(packable_topology({"a": 1, "b": 0}))


def test_the_id_of_a_plan_depends_on_its_content() -> None:
    """An update can name the plan that it starts from."""
    containers = _plan((1, [("a", 1, 0)])).containers
    assert fingerprint(containers, 9) == fingerprint(containers, 9) != fingerprint(containers, 10)
