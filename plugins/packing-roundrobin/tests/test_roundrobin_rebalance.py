"""Changing a plan: what is new goes where the fewest are, what stays does not move."""

from __future__ import annotations

from heron_packing_roundrobin import RoundRobinPacking
from heron_testing.contracts.packing import packable_topology, task_containers

_GIB = 1 << 30
_PACKING = RoundRobinPacking.open({})


def test_keeps_the_containers_of_what_stays() -> None:
    """Heron dealt everything anew: an update of one component moved nearly every task."""
    topology = packable_topology({"words": 4, "count": 4}, containers=4)
    plan = _PACKING.pack(topology)
    changed = _PACKING.repack(plan, topology, {"count": 6, "words": 3})
    before, after = task_containers(plan), task_containers(changed)
    assert all(after[task_id] == before[task_id] for task_id in before.keys() & after.keys())
    named, renamed = ({(each.component, each.component_index) for _, each in it.instances()} for it in (plan, changed))
    assert (renamed - named, named - renamed) == ({("count", 4), ("count", 5)}, {("words", 3)})


def test_opens_containers_as_the_topology_grows() -> None:
    """The number of instances in a container stays what the topology was submitted with."""
    topology = packable_topology({"words": 2, "count": 2}, containers=2)
    plan = _PACKING.repack(_PACKING.pack(topology), topology, {"count": 6})
    assert [len(container.instances) for container in plan.containers] == [2, 2, 2, 2]


def test_gives_up_a_container_that_became_empty() -> None:
    """Its machine is free for others; its id is the first to be used again."""
    topology = packable_topology({"words": 1, "count": 2}, containers=3)
    plan = _PACKING.pack(topology)
    shrunk = _PACKING.repack(plan, topology, {"count": 1})
    assert [container.container_id for container in shrunk.containers] == [1, 2]
    grown = _PACKING.repack(shrunk, topology, {"count": 2})
    assert [container.container_id for container in grown.containers] == [1, 2, 3]


def test_never_gives_a_task_id_again() -> None:
    """Also when the highest id was removed: its state, metrics and log belong to a task that is gone."""
    topology = packable_topology({"words": 1, "count": 2})
    shrunk = _PACKING.repack(_PACKING.pack(topology), topology, {"count": 1})
    grown = _PACKING.repack(shrunk, topology, {"count": 2})
    assert sorted(instance.task_id for _, instance in grown.instances()) == [1, 2, 4]


def test_leaves_containers_without_a_change_as_they_are() -> None:
    """Other options, or a plan by another packing, must not resize a container that nobody asked to change."""
    topology = packable_topology({"words": 2, "count": 2}, containers=2)
    plan = RoundRobinPacking.open({"instance_ram": "2GB"}).pack(topology)
    assert _PACKING.repack(plan, topology, {"count": 1}).container(1) == plan.container(1)


def test_passes_over_containers_without_room() -> None:
    """The container with the fewest instances may be full by memory."""
    config = {"topology.container.ram": 8 * _GIB, "topology.component.rammap": "big:6GB,small:1GB"}
    topology = packable_topology({"small": 3, "big": 1}, 2, config)
    plan = _PACKING.pack(topology)
    assert {instance.component for instance in plan.container(1).instances} == {"big", "small"}
    grown = _PACKING.repack(plan, topology, {"big": 3})
    assert [sum(instance.resource.ram_bytes for instance in container.instances) for container in grown.containers] == [
        7 * _GIB,
        8 * _GIB,
        6 * _GIB,
    ]
