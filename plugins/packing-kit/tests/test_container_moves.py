"""A plan in a given number of containers: what moves, what stays, and what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heron.api.definition import TopologyDefinition
from heron.errors import PackingError
from heron.planner.packing_plan import ContainerPlan, InstancePlan, PackingPlan, Resource, check_packing
from heron_packing_kit.container_moves import in_containers
from heron_packing_kit.plan_draft import DraftInstance
from heron_testing.builders import bolt, spout, stream, topology

_EACH = Resource(1.0, 100, 1)
_ROOM = 6


def _definition(**config: object) -> TopologyDefinition:
    return topology(spout("words", stream("word")), bolt("count"), name="packed", config=config)


_PLAIN = _definition()
_SAVED = _definition(**{"topology.reliability.mode": "EFFECTIVELY_ONCE"})


def _sized(container_id: int, instances: Sequence[DraftInstance]) -> ContainerPlan:
    plans = (
        InstancePlan(each.component, each.task_id, each.component_index, each.resource or _EACH) for each in instances
    )
    return ContainerPlan(container_id, tuple(plans), _EACH)


def _fits(instances: Sequence[DraftInstance]) -> bool:
    return len(instances) <= _ROOM


def _plan(*containers: str) -> PackingPlan:
    """A plan of containers such as ``words count count``; ids and indexes are given in order."""
    found, indexes, task_id = [], {"words": 0, "count": 0}, 0
    for container_id, names in enumerate(containers, 1):
        instances = []
        for name in names.split():
            task_id += 1
            instances.append(InstancePlan(name, task_id, indexes[name], _EACH))
            indexes[name] += 1
        found.append(ContainerPlan(container_id, tuple(instances), _EACH))
    return PackingPlan("p", tuple(found), task_id)


def _moved(current: PackingPlan, count: int, definition: TopologyDefinition = _PLAIN) -> PackingPlan:
    return in_containers(current, current, definition, count, _sized, _fits)


def _shown(plan: PackingPlan) -> dict[int, str]:
    return {
        each.container_id: " ".join(f"{one.component}-{one.component_index}/{one.task_id}" for one in each.instances)
        for each in plan.containers
    }


def test_a_new_container_gets_bolts_of_the_fullest_one() -> None:
    """A running task cannot move: the instance keeps its index and gets a task id that was never used."""
    after = _moved(_plan("words count count count", "count"), 3)
    assert _shown(after) == {1: "words-0/1 count-0/2", 2: "count-3/5", 3: "count-2/6 count-1/7"}
    assert after.last_task_id == 7


def test_the_container_that_costs_least_is_emptied() -> None:
    """Its instances go to the containers with the fewest instances; the spout stays."""
    after = _moved(_plan("words", "count count", "count count count"), 2)
    assert _shown(after) == {1: "words-0/1 count-0/7 count-1/8", 3: "count-2/4 count-3/5 count-4/6"}


def test_new_instances_move_without_another_task() -> None:
    """They do not run yet, so they keep the ids that the packing has given them."""
    current, repacked = _plan("words count"), _plan("words count", "count")
    after = in_containers(current, repacked, _PLAIN, 1, _sized, _fits)
    assert _shown(after) == {1: "words-0/1 count-0/2 count-1/3"}


def test_the_present_number_changes_nothing() -> None:
    """The command says so, and starts no task."""
    plan = _plan("words", "count count count")
    assert _moved(plan, 2) is plan


def test_spouts_move_with_checkpoints() -> None:
    """Their position is in the checkpoint."""
    plan = _plan("words words", "words words")
    assert _shown(_moved(plan, 1, _SAVED)) == {1: "words-0/1 words-1/2 words-2/5 words-3/6"}
    with pytest.raises(PackingError, match=r"task 3 of spout 'words' cannot move without checkpoints; give 2 or more"):
        _moved(plan, 1)
    with pytest.raises(PackingError, match=r"2 of the containers get no instance, because spouts .* give 2 or less"):
        _moved(plan, 4)


@pytest.mark.parametrize(
    ("count", "message"),
    [
        (0, "container number 0 is not an integer of 1 or more; raise it"),
        (9, "container number 9 exceeds the number of instances, 8; lower it to 8"),
        (1, "container number 1: no container has room for task 7 of 'count'; give 2 or more, or larger containers"),
    ],
)
def test_a_number_that_is_not_possible_is_refused(count: int, message: str) -> None:
    """Value, limit and remedy are in the message."""
    with pytest.raises(PackingError, match=message):
        _moved(_plan("words count count count count count", "count count"), count)


@st.composite
def _plans(draw: st.DrawFn) -> PackingPlan:
    names = st.lists(st.sampled_from(("words", "count")), min_size=1, max_size=_ROOM).map(" ".join)
    plan = _plan(*draw(st.lists(names, min_size=1, max_size=5)))
    return plan if set(plan.parallelism()) == {"words", "count"} else _plan("words count")


@settings(max_examples=200, deadline=None)
@given(plan=_plans(), count=st.integers(1, 12), saved=st.booleans())
def test_no_fewer_moves_are_possible(plan: PackingPlan, count: int, saved: bool) -> None:
    """Against a search through all choices of containers to empty; new containers become as full as the others."""
    before = {each.task_id: (each.component, each.component_index) for _, each in plan.instances()}
    try:
        after = _moved(plan, count, _SAVED if saved else _PLAIN)
    except PackingError as error:
        assert "container number" in str(error)  # noqa: PT017
        return
    check_packing(after, plan.parallelism())
    assert len(after.containers) == count
    present = {each.task_id: (each.component, each.component_index) for _, each in after.instances()}
    assert all(before[task] == present[task] for task in before.keys() & present.keys())
    moved = before.keys() - present.keys()
    assert saved or all(before[task][0] != "words" for task in moved)
    numbers = [len(each.instances) for each in plan.containers]
    if count < len(numbers) and saved:
        assert len(moved) == min(sum(each) for each in combinations(numbers, len(numbers) - count))
    if count > len(numbers) and saved:
        opened = [len(each.instances) for each in after.containers if each.container_id > len(numbers)]
        assert max(len(each.instances) for each in after.containers) - min(opened) <= 1
        assert len(moved) == sum(opened)
