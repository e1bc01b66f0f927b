"""Updates of a plan: members, routes and owners of key groups in each phase."""

from __future__ import annotations

from dataclasses import replace

from heron.api.definition import (
    ComponentDefinition,
    ComponentKind,
    GroupingDefinition,
    GroupingKind,
    InputDefinition,
    StreamDefinition,
    TopologyDefinition,
)
from heron.planner.key_owners import KeyOwners
from heron.planner.packing_plan import ContainerPlan, InstancePlan, PackingPlan, Resource
from heron.planner.physical_plan import PhysicalPlan, PlanIndex, TopologyState, UpdatePhase, physical_plan
from heron.planner.plan_update import merged, planned_update, reconciled, without
from heron.state_nodes.plans import decode_physical_plan, encode_plan

_WORD = (StreamDefinition("default", ("word",)),)
_TOPOLOGY = TopologyDefinition(
    "wordcount",
    (
        ComponentDefinition("words", ComponentKind.SPOUT, "m:W", 1, _WORD),
        ComponentDefinition(
            "count",
            ComponentKind.BOLT,
            "m:C",
            2,
            (),
            (InputDefinition("words", "default", GroupingDefinition(GroupingKind.FIELDS, ("word",))),),
        ),
    ),
    {"topology.key.groups": 8},
)


def _container(container_id: int, ram_bytes: int, *instances: str) -> ContainerPlan:
    parts = (each.split("-") for each in instances)
    each = Resource(1.0, 100, 1)
    return ContainerPlan(
        container_id,
        tuple(InstancePlan(name, int(task), int(index), each) for name, task, index in parts),
        Resource(1.0, ram_bytes, 1),
    )


BEFORE = PackingPlan("before", (_container(1, 300, "words-1-0", "count-2-0"), _container(2, 200, "count-3-1")), 3)
LARGER = PackingPlan(
    "larger",
    (
        _container(1, 300, "words-1-0", "count-2-0"),
        _container(2, 300, "count-3-1", "count-4-2"),
        _container(3, 200, "count-5-3"),
    ),
    5,
)
SMALLER = PackingPlan("smaller", (_container(1, 300, "words-1-0", "count-2-0"),), 3)


def _plan(packing: PackingPlan) -> PhysicalPlan:
    return physical_plan(packing, _TOPOLOGY, (), version=1, epoch=1, topology_id="w-1", state=TopologyState.RUNNING)


def test_new_tasks_are_members_before_they_are_routed_to() -> None:
    """Segments for a task that no stream manager knows would be lost."""
    update = planned_update(PlanIndex(_plan(BEFORE)), LARGER, 2)
    assert (update.number, update.phase, update.added, update.removed) == (2, UpdatePhase.PREPARE, (4, 5), ())
    plan = replace(_plan(merged(BEFORE, LARGER)), update=update)
    prepared = PlanIndex(plan)
    assert prepared.tasks_of("count") == (2, 3)
    assert prepared.members_of("count") == prepared.downstream_tasks("words") == (2, 3, 4, 5)
    assert prepared.key_owners("count") == (2, 2, 2, 2, 3, 3, 3, 3)
    switched = PlanIndex(replace(plan, update=replace(update, phase=UpdatePhase.SWITCH)))
    assert switched.tasks_of("count") == (2, 3, 4, 5)
    assert switched.key_owners("count") == (2, 2, 4, 4, 3, 3, 5, 5)
    assert switched.tasks_of("words") == switched.members_of("words") == (1,)


def test_removed_tasks_are_members_until_they_have_left() -> None:
    """Their consumers wait for the data that they still send."""
    update = planned_update(PlanIndex(_plan(BEFORE)), SMALLER, 2)
    assert (update.added, update.removed) == ((), (3,))
    plan = replace(_plan(merged(BEFORE, SMALLER)), update=replace(update, phase=UpdatePhase.SWITCH))
    switched = PlanIndex(plan)
    assert switched.tasks_of("count") == (2,)
    assert switched.members_of("count") == (2, 3)
    assert set(switched.key_owners("count")) == {2}


def test_a_task_that_moves_gives_all_its_groups_to_the_one_that_replaces_it() -> None:
    """State of `init_state` goes there too, so no group may go elsewhere, also if the shares are not even."""
    three = PackingPlan("three", (_container(1, 300, "words-1-0", "count-2-0", "count-3-1", "count-4-2"),), 4)
    index = PlanIndex(replace(_plan(three), key_owners={"count": KeyOwners.of((2, 2, 3, 3, 4, 4, 4, 4))}))
    moved = replace(
        three, containers=(_container(1, 300, "words-1-0", "count-3-1", "count-4-2"), _container(2, 100, "count-5-0"))
    )
    even = PlanIndex(replace(_plan(three), key_owners={"count": KeyOwners.of((2, 2, 2, 3, 3, 4, 4, 4))}))
    assert planned_update(even, moved, 2).key_owners["count"].table() == (5, 5, 5, 3, 3, 4, 4, 4)
    assert planned_update(index, moved, 2).key_owners["count"].table() == (5, 5, 3, 3, 4, 4, 4, 4)


def test_owners_outlive_the_update() -> None:
    """After it the ranges are broken, so they cannot be computed from the tasks."""
    update = planned_update(PlanIndex(_plan(BEFORE)), LARGER, 2)
    after = PlanIndex(replace(_plan(LARGER), key_owners=update.key_owners))
    assert after.key_owners("count") == (2, 2, 4, 4, 3, 3, 5, 5)
    again = planned_update(after, LARGER, 3)
    assert not again.added
    assert not again.removed
    assert not again.key_owners


def test_a_merged_packing_has_every_member_and_room_for_it() -> None:
    """An executor that starts during the update reads it."""
    both = merged(BEFORE, LARGER)
    assert [each.container_id for each in both.containers] == [1, 2, 3]
    assert [each.task_id for _, each in both.instances()] == [1, 2, 3, 4, 5]
    assert [each.required.ram_bytes for each in both.containers] == [300, 300, 200]
    assert merged(BEFORE, SMALLER) == replace(BEFORE, id=merged(BEFORE, SMALLER).id)


def test_ids_of_removed_tasks_are_not_used_again() -> None:
    """Late data of a removed task must not be taken for data of another."""
    left = without(merged(BEFORE, LARGER), {4, 5})
    assert left.parallelism() == BEFORE.parallelism()
    assert [each.container_id for each in left.containers] == [1, 2]
    assert left.next_task_id() == 6


def test_a_plan_with_an_update_is_a_document() -> None:
    """A standby reads the phase from it."""
    update = planned_update(PlanIndex(_plan(BEFORE)), LARGER, 2)
    plan = replace(_plan(merged(BEFORE, LARGER)), update=update, key_owners=update.key_owners)
    assert decode_physical_plan(encode_plan(plan), "test") == plan


def test_a_leader_that_died_between_two_writes_leaves_plans_that_can_be_reconciled() -> None:
    """It writes the physical plan first, so the packing plan may be that of the phase before."""
    update = planned_update(PlanIndex(_plan(BEFORE)), LARGER, 2)
    both = merged(BEFORE, LARGER)
    prepared = replace(_plan(both), update=update)
    assert reconciled(prepared, both) == (prepared, both)
    # Begun: nobody knows the resources of the new tasks, so the update is withdrawn.
    assert reconciled(prepared, BEFORE) == (_plan(BEFORE), BEFORE)
    # Withdrawn: the packing plan still has the added tasks.
    assert reconciled(_plan(BEFORE), both) == (_plan(BEFORE), without(both, {4, 5}))
    # Complete: it still has the removed ones.
    completed = _plan(without(merged(BEFORE, SMALLER), {3}))
    assert reconciled(completed, merged(BEFORE, SMALLER)) == (completed, without(merged(BEFORE, SMALLER), {3}))


def test_plans_that_agree_stay_as_they_are() -> None:
    """A takeover without an update writes no packing plan."""
    plan, packing = reconciled(_plan(BEFORE), BEFORE)
    assert plan == _plan(BEFORE)
    assert packing is BEFORE
