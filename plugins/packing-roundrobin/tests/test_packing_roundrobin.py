"""Round robin: its contract, the placement of instances, and their resources."""

from __future__ import annotations

import logging

import pytest

from heron.errors import ConfigError, PackingError
from heron.planner.packing_plan import PackingPlan, Resource
from heron_packing_roundrobin import RoundRobinPacking
from heron_testing.contracts.packing import PackingContract, packable_topology

_MIB = 1 << 20
_GIB = 1 << 30


class TestContract(PackingContract):
    """Round robin meets the contract of the family."""

    name = "roundrobin"
    driver_class = RoundRobinPacking


def _packing(**options: object) -> RoundRobinPacking:
    return RoundRobinPacking.open(options)


def _tasks(plan: PackingPlan) -> dict[int, list[tuple[str, int]]]:
    return {
        container.container_id: [(each.component, each.task_id) for each in container.instances]
        for container in plan.containers
    }


def test_assigns_in_turn_across_components() -> None:
    """The order continues from one component to the next, so containers differ by at most one instance."""
    plan = _packing().pack(packable_topology({"words": 2, "count": 3}, containers=2))
    assert _tasks(plan) == {1: [("words", 1), ("count", 3), ("count", 5)], 2: [("words", 2), ("count", 4)]}


def test_assigns_the_largest_memory_first() -> None:
    """Large instances spread over the containers before small instances fill the gaps."""
    config = {"topology.component.rammap": "count:3GB,join:1GB"}
    plan = _packing().pack(packable_topology({"words": 1, "join": 1, "count": 2}, 2, config))
    assert _tasks(plan) == {1: [("count", 1), ("join", 3)], 2: [("count", 2), ("words", 4)]}


def test_uses_defaults_and_padding_without_keys_of_the_topology() -> None:
    """Heron's defaults: 1 core, 1 GiB and 1 GiB per instance; 1 core, 2 GiB and 12 GiB for the engine."""
    plan = _packing().pack(packable_topology({"words": 1, "count": 1}))
    required = plan.containers[0].required
    assert (required.cpu, required.ram_bytes, required.disk_bytes) == (3.0, 4 * _GIB, 14 * _GIB)


def test_the_padding_may_be_zero() -> None:
    """On a laptop the engine needs no reservation."""
    packing = _packing(stmgr_ram=0, metricsmgr_ram=0, container_cpu_padding=0, container_disk_padding=0)
    assert packing.pack(packable_topology({"words": 1})).containers[0].required == Resource(1.0, _GIB, _GIB)
    config: dict[str, object] = {"topology.container.ram.padding": 0}
    assert _packing().pack(packable_topology({"words": 1}, 1, config)).containers[0].required.ram_bytes == _GIB


def test_gives_every_default_instance_the_same_amount() -> None:
    """In Heron an instance gets more in a container with fewer instances, which looks like an error."""
    plan = _packing(instance_ram="512MB").pack(packable_topology({"words": 3}, containers=2))
    assert {instance.resource.ram_bytes for _, instance in plan.instances()} == {512 * _MIB}


def test_instances_without_an_entry_share_the_rest_of_a_given_size() -> None:
    """The rest is the size without the padding and the instances with an entry."""
    config = {
        "topology.container.ram": 10 * _GIB,
        "topology.container.ram.padding": 1 * _GIB,
        "topology.component.rammap": "count:3GB",
    }
    plan = _packing().pack(packable_topology({"words": 1, "count": 1, "join": 1}, config=config))
    by_component = {instance.component: instance.resource.ram_bytes for _, instance in plan.instances()}
    assert by_component == {"words": 3 * _GIB, "count": 3 * _GIB, "join": 3 * _GIB}
    assert plan.containers[0].required.ram_bytes == 10 * _GIB


def test_drops_the_padding_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    """Heron packs such a container too. The warning explains why the engine may lack memory."""
    config = {"topology.container.ram": 4 * _GIB, "topology.component.rammap": "words:3GB"}
    with caplog.at_level(logging.WARNING):
        plan = _packing().pack(packable_topology({"words": 1}, config=config))
    assert plan.containers[0].required.ram_bytes == 4 * _GIB
    assert "container 1: its instances leave less ram than the padding of 2147483648 bytes" in caplog.text
    assert "raise topology.container.ram" in caplog.text


def test_refuses_more_containers_than_instances() -> None:
    """An empty container would have no use. The message has both numbers."""
    with pytest.raises(PackingError, match=r"topology\.stmgrs 5 .* 3; lower"):
        _packing().pack(packable_topology({"words": 3}, containers=5))


def test_refuses_an_instance_below_the_minimum_of_memory() -> None:
    """The limit of Heron, 16 MiB, applies to entries of the map and to shares of the rest."""
    with pytest.raises(PackingError, match="'words' requests 1048576 bytes of ram per instance, below"):
        _packing().pack(packable_topology({"words": 1}, config={"topology.component.rammap": "words:1MB"}))
    config = {"topology.container.ram": 100 * _MIB}
    with pytest.raises(PackingError, match=r"container 1: 10 instances .* 10485760 bytes of ram each"):
        _packing().pack(packable_topology({"words": 10}, config=config))


def test_refuses_an_option_with_an_unknown_unit() -> None:
    """The error names the option and the units."""
    with pytest.raises(ConfigError, match=r"packing\.instance_ram: '1 parsec' .* known: .*'gib'"):
        _packing(instance_ram="1 parsec")
