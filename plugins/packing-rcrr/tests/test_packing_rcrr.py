"""Resource-compliant round robin: its contract, the number of containers, the placement, and changes."""

from __future__ import annotations

import logging

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heron.api.definition import TopologyDefinition
from heron.errors import ConfigError, PackingError
from heron.planner.packing_plan import PackingPlan, Resource
from heron_packing_kit.capacity import Capacity
from heron_packing_rcrr import ResourceCompliantPacking
from heron_packing_rcrr.container_count import fewest_containers
from heron_testing.contracts.packing import PackingContract, limited_topologies, packable_topology, task_containers

_GIB = 1 << 30
_PACKING = ResourceCompliantPacking.open({})


class TestContract(PackingContract):
    """Resource-compliant round robin meets the contract of the family."""

    name = "rcrr"
    driver_class = ResourceCompliantPacking


def _components(plan: PackingPlan) -> dict[int, list[str]]:
    return {container.container_id: [each.component for each in container.instances] for container in plan.containers}


def test_assigns_in_turn_in_the_order_of_declaration() -> None:
    """Heron uses the order of a hash map, which differs between runs."""
    plan = _PACKING.pack(packable_topology({"words": 2, "count": 3}, containers=2))
    assert _components(plan) == {1: ["words", "count", "count"], 2: ["words", "count"]}


def test_opens_more_containers_than_requested_if_the_resources_need_them() -> None:
    """Nine instances with the defaults fit a container, so nineteen instances need three containers."""
    plan = _PACKING.pack(packable_topology({"words": 10, "count": 9}, containers=1))
    assert [len(container.instances) for container in plan.containers] == [7, 6, 6]


def test_assigns_no_two_large_instances_to_a_container_with_room_for_one() -> None:
    """Assignment in turn can need more containers than the instances would fill."""
    config = {"topology.component.rammap": "big:5GB,small:1GB", "topology.container.ram": 8 * _GIB}
    plan = _PACKING.pack(packable_topology({"big": 3, "small": 2}, 1, config))
    assert _components(plan) == {1: ["big", "small"], 2: ["big", "small"], 3: ["big"]}


def test_uses_at_most_one_container_per_instance(caplog: pytest.LogCaptureFixture) -> None:
    """An empty container would have no use. As in Heron this is a warning; it has both numbers."""
    with caplog.at_level(logging.WARNING):
        plan = _PACKING.pack(packable_topology({"words": 3}, containers=5))
    assert len(plan.containers) == 3
    assert "topology.stmgrs 5 exceeds the number of instances, 3; using 3 containers" in caplog.text


def test_refuses_an_instance_that_fits_no_container() -> None:
    """The search for the number of containers would never end."""
    with pytest.raises(PackingError, match=r"'words' requests 9\.5 cores of cpu per instance, .* room for 9\.0 cores"):
        _PACKING.pack(packable_topology({"words": 3}, config={"topology.component.cpumap": "words:9.5"}))


@settings(max_examples=60)
@given(topology=limited_topologies())
def test_packs_every_topology_whose_instances_fit_a_container(topology: TopologyDefinition) -> None:
    """One container per instance is always enough."""
    assert _PACKING.pack(topology).containers


@given(
    sizes=st.lists(st.integers(1, 10), min_size=1, max_size=40), at_least=st.integers(1, 40), most=st.integers(1, 10)
)
def test_container_count_equals_a_plain_search(sizes: list[int], at_least: int, most: int) -> None:
    """The bounds and sums are faster than a search that assigns the instances to one more container each time."""
    capacity = Capacity(Resource(11.0, 11, 11), Resource(1.0, 1, 1), most, {})
    needs = [Resource(size / 10, size, 1) for size in sizes]

    def fits(count: int) -> bool:
        containers = [needs[at::count] for at in range(count)]
        return all(sum(each.ram_bytes for each in held) <= 10 and len(held) <= min(most, 10) for held in containers)

    expected = next(count for count in range(at_least, 1000) if fits(count))
    assert fewest_containers(needs, capacity, at_least) == expected


def test_new_instances_continue_the_order() -> None:
    """Repeated growth by one spreads over the containers; it does not fill the first container."""
    topology = packable_topology({"words": 4}, containers=3)
    plan = _PACKING.pack(topology)
    for count in range(5, 8):
        plan = _PACKING.repack(plan, topology, {"words": count})
    assert [[each.task_id for each in container.instances] for container in plan.containers] == [
        [1, 4, 7],
        [2, 5],
        [3, 6],
    ]


def test_grows_to_more_containers_than_instances_at_submission() -> None:
    """Heron refuses it: it tries at most as many containers as there were instances at submission."""
    topology = packable_topology({"words": 2}, containers=1)
    plan = _PACKING.repack(_PACKING.pack(topology), topology, {"words": 60})
    assert [len(container.instances) for container in plan.containers] == [9, 9, 9, 9, 8, 8, 8]


def test_spreads_new_instances_over_all_new_containers() -> None:
    """Heron opens half of the computed number, and fills each container before it opens the next."""
    topology = packable_topology({"words": 9}, containers=1)
    plan = _PACKING.pack(topology)
    grown = _PACKING.repack(plan, topology, {"words": 9 + 20})
    assert [len(container.instances) for container in grown.containers] == [9, 7, 7, 6]
    assert task_containers(plan).items() <= task_containers(grown).items()


def test_skips_containers_without_room() -> None:
    """The order continues at the next container."""
    config = {"topology.component.rammap": "big:6GB,small:1GB", "topology.container.ram": 8 * _GIB}
    topology = packable_topology({"big": 1, "small": 3}, 2, config)
    plan = _PACKING.pack(topology)
    assert _components(plan) == {1: ["big", "small"], 2: ["small", "small"]}
    grown = _PACKING.repack(plan, topology, {"small": 6})
    assert _components(grown) == {1: ["big", "small"], 2: ["small"] * 5}


def test_refuses_an_option_with_an_unknown_unit() -> None:
    """The error names the option and the units."""
    with pytest.raises(ConfigError, match=r"packing\.instance_ram: '1 parsec' .* known: .*'gib'"):
        ResourceCompliantPacking.open({"instance_ram": "1 parsec"})
