"""The deal within limits: how many containers, who goes where, what a change adds."""

from __future__ import annotations

import logging

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heron.api.definition import TopologyDefinition
from heron.errors import ConfigError, PackingError
from heron.planner.capacity import Capacity
from heron.planner.packing_plan import PackingPlan, Resource
from heron_packing_rcrr import ResourceCompliantPacking
from heron_packing_rcrr.deal import fewest_containers
from heron_testing.contracts.packing import limited_topologies, packable_topology, task_containers

_GIB = 1 << 30
_PACKING = ResourceCompliantPacking.open({})


def _dealt(plan: PackingPlan) -> dict[int, list[str]]:
    return {container.container_id: [each.component for each in container.instances] for container in plan.containers}


def test_deals_in_turn_in_the_order_of_declaration() -> None:
    """Heron took the order of a hash map, which differs from run to run."""
    plan = _PACKING.pack(packable_topology({"words": 2, "count": 3}, containers=2))
    assert _dealt(plan) == {1: ["words", "count", "count"], 2: ["words", "count"]}


def test_opens_more_containers_than_asked_for_where_the_resources_need_them() -> None:
    """Nine default instances fit one container, so nineteen are dealt to three."""
    plan = _PACKING.pack(packable_topology({"words": 10, "count": 9}, containers=1))
    assert [len(container.instances) for container in plan.containers] == [7, 6, 6]


def test_deals_no_container_two_instances_of_which_one_fits() -> None:
    """The number of containers at which the deal works out is not the least that could hold the instances."""
    config = {"topology.component.rammap": "big:5GB,small:1GB", "topology.container.ram": 8 * _GIB}
    plan = _PACKING.pack(packable_topology({"big": 3, "small": 2}, 1, config))
    assert _dealt(plan) == {1: ["big", "small"], 2: ["big", "small"], 3: ["big"]}


def test_deals_to_no_more_containers_than_instances(caplog: pytest.LogCaptureFixture) -> None:
    """An empty container would be started for nothing; as in Heron it is a warning, with both numbers."""
    with caplog.at_level(logging.WARNING):
        plan = _PACKING.pack(packable_topology({"words": 3}, containers=5))
    assert len(plan.containers) == 3
    assert "topology.stmgrs 5 exceeds the number of instances, 3" in caplog.text


def test_names_what_fits_nowhere() -> None:
    """More containers would not help, so the search for their number must not begin."""
    with pytest.raises(PackingError, match=r"'words' asks for 9\.5 cores of cpu an instance, .* room for 9\.0 cores"):
        _PACKING.pack(packable_topology({"words": 3}, config={"topology.component.cpumap": "words:9.5"}))


@settings(max_examples=60)
@given(topology=limited_topologies())
def test_packs_whatever_fits_one_by_one(topology: TopologyDefinition) -> None:
    """With as many containers as instances the deal always works out."""
    assert _PACKING.pack(topology).containers


@given(
    sizes=st.lists(st.integers(1, 10), min_size=1, max_size=40), at_least=st.integers(1, 40), most=st.integers(1, 10)
)
def test_finds_the_number_that_trying_out_finds(sizes: list[int], at_least: int, most: int) -> None:
    """The bounds and sums are only a quick way to what dealing again and again, with one more each time, gives."""
    capacity = Capacity(Resource(11.0, 11, 11), Resource(1.0, 1, 1), most, {})
    needs = [Resource(size / 10, size, 1) for size in sizes]

    def works_out(count: int) -> bool:
        hands = [needs[at::count] for at in range(count)]
        return all(sum(each.ram_bytes for each in hand) <= 10 and len(hand) <= min(most, 10) for hand in hands)

    expected = next(count for count in range(at_least, 1000) if works_out(count))
    assert fewest_containers(needs, capacity, at_least) == expected


def test_goes_on_dealing_where_it_ended() -> None:
    """Growing by one, again and again, spreads over the containers instead of filling the first."""
    topology = packable_topology({"words": 4}, containers=3)
    plan = _PACKING.pack(topology)
    for count in range(5, 8):
        plan = _PACKING.repack(plan, topology, {"words": count})
    assert [[each.task_id for each in container.instances] for container in plan.containers] == [
        [1, 4, 7],
        [2, 5],
        [3, 6],
    ]


def test_grows_beyond_the_number_of_instances_it_was_submitted_with() -> None:
    """Heron refused it: the number of instances at submission was the most containers it tried."""
    topology = packable_topology({"words": 2}, containers=1)
    plan = _PACKING.repack(_PACKING.pack(topology), topology, {"words": 60})
    assert [len(container.instances) for container in plan.containers] == [9, 9, 9, 9, 8, 8, 8]


def test_spreads_what_is_new_over_all_it_must_open() -> None:
    """Heron opened half of what it had computed, and filled it before it opened the next."""
    topology = packable_topology({"words": 9}, containers=1)
    plan = _PACKING.pack(topology)
    grown = _PACKING.repack(plan, topology, {"words": 9 + 20})
    assert [len(container.instances) for container in grown.containers] == [9, 7, 7, 6]
    assert task_containers(plan).items() <= task_containers(grown).items()


def test_passes_over_containers_without_room() -> None:
    """The deal goes on behind them."""
    config = {"topology.component.rammap": "big:6GB,small:1GB", "topology.container.ram": 8 * _GIB}
    topology = packable_topology({"big": 1, "small": 3}, 2, config)
    plan = _PACKING.pack(topology)
    assert _dealt(plan) == {1: ["big", "small"], 2: ["small", "small"]}
    grown = _PACKING.repack(plan, topology, {"small": 6})
    assert _dealt(grown) == {1: ["big", "small"], 2: ["small"] * 5}


def test_refuses_an_option_with_an_unknown_unit() -> None:
    """The error names the option and the units."""
    with pytest.raises(ConfigError, match=r"packing\.instance_ram: '1 parsec' .* known: .*'gib'"):
        ResourceCompliantPacking.open({"instance_ram": "1 parsec"})
