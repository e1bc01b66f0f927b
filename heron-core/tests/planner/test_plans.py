"""Packing plans and physical plans: rules, and the look-ups of routing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heron.api.definition import (
    ComponentDefinition,
    ComponentKind,
    GroupingDefinition,
    GroupingKind,
    InputDefinition,
    StreamDefinition,
    TopologyDefinition,
)
from heron.errors import PackingError
from heron.planner.packing_plan import ContainerPlan, InstancePlan, PackingPlan, Resource, check_packing
from heron.planner.physical_plan import (
    PhysicalPlan,
    PlanIndex,
    StreamManagerLocation,
    TaskPlan,
    TopologyState,
    physical_plan,
)

_ROOM = Resource(1.0, 1 << 30, 1 << 30)
_STMGRS = (StreamManagerLocation(1, 1, "ipc://a", "host", 11), StreamManagerLocation(2, 1, "ipc://b", "host", 12))
_SHUFFLE = GroupingDefinition(GroupingKind.SHUFFLE)
_TOPOLOGY = TopologyDefinition(
    "wordcount",
    (
        ComponentDefinition("words", ComponentKind.SPOUT, "m:W", 1, (StreamDefinition("default", ("word",)),)),
        ComponentDefinition(
            "split",
            ComponentKind.BOLT,
            "m:S",
            2,
            (StreamDefinition("default", ("word",)),),
            (InputDefinition("words", "default", _SHUFFLE),),
        ),
        ComponentDefinition(
            "count",
            ComponentKind.BOLT,
            "m:C",
            1,
            (),
            (InputDefinition("split", "default", _SHUFFLE), InputDefinition("words", "default", _SHUFFLE)),
        ),
    ),
)


def _packing(**containers: str) -> PackingPlan:
    """Containers by ``cN``, each as ``component-task-index component-task-index``."""
    return PackingPlan(
        "test",
        tuple(
            ContainerPlan(
                int(name[1:]),
                tuple(
                    InstancePlan(component, int(task), int(index), _ROOM)
                    for component, task, index in (each.split("-") for each in instances.split())
                ),
                _ROOM,
            )
            for name, instances in containers.items()
        ),
    )


_PACKED = _packing(c1="words-1-0 split-3-1", c2="split-2-0 count-4-0")
_COUNTS = {"words": 1, "split": 2, "count": 1}


def _plan(packing: PackingPlan = _PACKED, stmgrs: tuple[StreamManagerLocation, ...] = _STMGRS) -> PhysicalPlan:
    return physical_plan(packing, _TOPOLOGY, stmgrs, version=7, epoch=3, topology_id="w-1", state=TopologyState.RUNNING)


def test_a_physical_plan_is_in_order() -> None:
    """Tasks are in order of id and stream managers in order of container, whatever the order of registration."""
    plan = _plan(stmgrs=_STMGRS[::-1])
    assert plan.tasks == (
        TaskPlan(1, "words", 0, 1),
        TaskPlan(2, "split", 0, 2),
        TaskPlan(3, "split", 1, 1),
        TaskPlan(4, "count", 0, 2),
    )
    assert plan.stmgrs == _STMGRS
    assert (plan.version, plan.epoch, plan.topology_id, plan.state) == (7, 3, "w-1", TopologyState.RUNNING)
    assert plan.topology is _TOPOLOGY


def test_the_packing_plan_decides_the_parallelism() -> None:
    """An update changes the packing plan and not the submitted definition."""
    plan = _plan(_packing(c1="words-1-0", c2="split-2-0 count-4-0"))
    assert plan.topology.component("split").parallelism == 1
    assert plan.topology.component("words") is _TOPOLOGY.component("words")


def test_refuses_parts_that_do_not_belong_together() -> None:
    """Examples: a state node of another topology, a stream manager of a removed container."""
    with pytest.raises(PackingError, match="'count' of 'wordcount' has no instance"):
        _plan(_packing(c1="words-1-0 split-3-0"))
    with pytest.raises(PackingError, match="has no container 2"):
        _plan(_packing(c1="words-1-0 split-3-0 count-2-0"))
    with pytest.raises(PackingError, match=r"unknown component 'cuont' \(nearest: 'count'\)"):
        _plan(_packing(c1="words-1-0 split-3-0 count-2-0", c2="cuont-4-0"))


@pytest.mark.parametrize(
    ("packing", "message"),
    [
        (_packing(c0="words-1-0"), "container 0: ids of containers start at 1"),
        (_packing(c1=""), "container 1: is empty"),
        (PackingPlan("test", _PACKED.containers * 2), "container 1: is in the plan twice"),
        (_packing(c1="words-0-0"), "container 1, task 0: task ids start at 1"),
        (_packing(c1="words-1-0", c2="split-1-0"), "container 2, task 1: the task is also in container 1"),
        (
            _packing(c1="words-1-0 split-2-0 split-3-2 count-4-0"),
            "'split': has the indexes 0, 2, not each of 0 to 1",
        ),
        (_packing(c1="words-1-0 split-2-0 split-3-1"), "'count': has the indexes none"),
    ],
)
def test_refuses_a_packing_plan_that_breaks_a_rule(packing: PackingPlan, message: str) -> None:
    """The topology manager and the contract suite of packings use this check."""
    with pytest.raises(PackingError, match=message):
        check_packing(packing, _COUNTS)


def test_the_next_task_id_is_new() -> None:
    """The plan stores the highest id of all instances, also of removed ones."""
    assert _PACKED.next_task_id() == 5
    assert replace(_PACKED, last_task_id=9).next_task_id() == 10
    assert PackingPlan("empty", ()).next_task_id() == 1


def test_the_look_ups_of_routing() -> None:
    """Markers need upstream tasks, links need downstream tasks, groupings need tasks by component index."""
    index = PlanIndex(_plan())
    assert index.tasks_of("split") == (2, 3)
    assert index.tasks_of("nothing") == ()
    assert index.upstream_tasks("count") == {1, 2, 3}
    assert index.upstream_tasks("words") == frozenset()
    assert index.downstream_tasks("words") == (2, 3, 4)
    assert index.downstream_tasks("count") == ()
    assert index.containers[2].endpoint == "ipc://b"
