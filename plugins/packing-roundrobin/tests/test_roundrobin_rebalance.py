"""Changes of a plan: new instances go to the containers with the fewest instances, and no other instance moves."""

from __future__ import annotations

from heron_packing_roundrobin import RoundRobinPacking
from heron_testing.contracts.packing import packable_topology, task_containers

_GIB = 1 << 30
_PACKING = RoundRobinPacking.open({})


def test_remaining_instances_keep_their_containers() -> None:
    """Heron makes a new plan, so an update of one component moves nearly every task."""
    topology = packable_topology({"words": 4, "count": 4}, containers=4)
    plan = _PACKING.pack(topology)
    changed = _PACKING.repack(plan, topology, {"count": 6, "words": 3})
    before, after = task_containers(plan), task_containers(changed)
    assert all(after[task_id] == before[task_id] for task_id in before.keys() & after.keys())
    named, renamed = ({(each.component, each.component_index) for _, each in it.instances()} for it in (plan, changed))
    assert (renamed - named, named - renamed) == ({("count", 4), ("count", 5)}, {("words", 3)})


def test_opens_containers_as_the_topology_grows() -> None:
    """The number of instances per container stays as at submission."""
    topology = packable_topology({"words": 2, "count": 2}, containers=2)
    plan = _PACKING.repack(_PACKING.pack(topology), topology, {"count": 6})
    assert [len(container.instances) for container in plan.containers] == [2, 2, 2, 2]


def test_removes_an_empty_container() -> None:
    """Its resources are free for other jobs; the next new container gets its id."""
    topology = packable_topology({"words": 1, "count": 2}, containers=3)
    plan = _PACKING.pack(topology)
    shrunk = _PACKING.repack(plan, topology, {"count": 1})
    assert [container.container_id for container in shrunk.containers] == [1, 2]
    grown = _PACKING.repack(shrunk, topology, {"count": 2})
    assert [container.container_id for container in grown.containers] == [1, 2, 3]


def test_never_reuses_a_task_id() -> None:
    """The removed task can have the highest id. Its metrics and log must not mix with those of a new task."""
    topology = packable_topology({"words": 1, "count": 2})
    shrunk = _PACKING.repack(_PACKING.pack(topology), topology, {"count": 1})
    grown = _PACKING.repack(shrunk, topology, {"count": 2})
    assert sorted(instance.task_id for _, instance in grown.instances()) == [1, 2, 4]


def test_unchanged_containers_keep_their_size() -> None:
    """Other options, or a plan of another packing, must not resize a container without a change."""
    topology = packable_topology({"words": 2, "count": 2}, containers=2)
    plan = RoundRobinPacking.open({"instance_ram": "2GB"}).pack(topology)
    assert _PACKING.repack(plan, topology, {"count": 1}).container(1) == plan.container(1)


def test_skips_containers_without_room() -> None:
    """The container with the fewest instances may have no free memory."""
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
