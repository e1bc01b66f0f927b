"""The dealing itself: who goes where, with how much."""

from __future__ import annotations

import logging

import pytest

from heron.errors import ConfigError, PackingError
from heron.planner.packing_plan import PackingPlan, Resource
from heron_packing_roundrobin import RoundRobinPacking
from heron_testing.contracts.packing import packable_topology

_MIB = 1 << 20
_GIB = 1 << 30


def _packing(**options: object) -> RoundRobinPacking:
    return RoundRobinPacking.open(options)


def _dealt(plan: PackingPlan) -> dict[int, list[tuple[str, int]]]:
    return {
        container.container_id: [(each.component, each.task_id) for each in container.instances]
        for container in plan.containers
    }


def test_deals_in_turn_across_components() -> None:
    """The deal goes on from one component to the next, so that containers differ by one instance at most."""
    plan = _packing().pack(packable_topology({"words": 2, "count": 3}, containers=2))
    assert _dealt(plan) == {1: [("words", 1), ("count", 3), ("count", 5)], 2: [("words", 2), ("count", 4)]}


def test_deals_the_largest_memory_first() -> None:
    """Large instances spread over the containers before small ones fill the gaps."""
    config = {"topology.component.rammap": "count:3GB,join:1GB"}
    plan = _packing().pack(packable_topology({"words": 1, "join": 1, "count": 2}, 2, config))
    assert _dealt(plan) == {1: [("count", 1), ("join", 3)], 2: [("count", 2), ("words", 4)]}


def test_gives_defaults_and_padding_where_the_topology_says_nothing() -> None:
    """Heron's defaults: 1 core, 1 GiB and 1 GiB an instance; 1 core, 2 GiB and 12 GiB for the engine."""
    plan = _packing().pack(packable_topology({"words": 1, "count": 1}))
    required = plan.containers[0].required
    assert (required.cpu, required.ram_bytes, required.disk_bytes) == (3.0, 4 * _GIB, 14 * _GIB)


def test_the_padding_may_be_nothing() -> None:
    """On a laptop the engine's share is not worth a reservation."""
    packing = _packing(stmgr_ram=0, metricsmgr_ram=0, container_cpu_padding=0, container_disk_padding=0)
    assert packing.pack(packable_topology({"words": 1})).containers[0].required == Resource(1.0, _GIB, _GIB)
    config: dict[str, object] = {"topology.container.ram.padding": 0}
    assert _packing().pack(packable_topology({"words": 1}, 1, config)).containers[0].required.ram_bytes == _GIB


def test_gives_every_default_instance_the_same_amount() -> None:
    """Heron gave instances more in a container that was dealt fewer; users took that for a mistake."""
    plan = _packing(instance_ram="512MB").pack(packable_topology({"words": 3}, containers=2))
    assert {instance.resource.ram_bytes for _, instance in plan.instances()} == {512 * _MIB}


def test_shares_what_is_left_of_a_container_of_given_size() -> None:
    """With a size asked for, unmapped instances have what mapped ones and the padding leave, in equal parts."""
    config = {
        "topology.container.ram": 10 * _GIB,
        "topology.container.ram.padding": 1 * _GIB,
        "topology.component.rammap": "count:3GB",
    }
    plan = _packing().pack(packable_topology({"words": 1, "count": 1, "join": 1}, config=config))
    by_component = {instance.component: instance.resource.ram_bytes for _, instance in plan.instances()}
    assert by_component == {"words": 3 * _GIB, "count": 3 * _GIB, "join": 3 * _GIB}
    assert plan.containers[0].required.ram_bytes == 10 * _GIB


def test_gives_the_padding_up_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    """Heron packs such a container too; the warning says why the engine may be short of memory."""
    config = {"topology.container.ram": 4 * _GIB, "topology.component.rammap": "words:3GB"}
    with caplog.at_level(logging.WARNING):
        plan = _packing().pack(packable_topology({"words": 1}, config=config))
    assert plan.containers[0].required.ram_bytes == 4 * _GIB
    assert "container 1" in caplog.text


def test_refuses_more_containers_than_instances() -> None:
    """An empty container would be started for nothing; the message has both numbers."""
    with pytest.raises(PackingError, match=r"topology\.stmgrs 5 .* 3; lower"):
        _packing().pack(packable_topology({"words": 3}, containers=5))


def test_refuses_an_instance_below_the_least_memory() -> None:
    """16 MiB is Heron's limit, whether the share is asked for or what is left."""
    with pytest.raises(PackingError, match="'words' asks for 1048576 bytes of ram"):
        _packing().pack(packable_topology({"words": 1}, config={"topology.component.rammap": "words:1MB"}))
    config = {"topology.container.ram": 100 * _MIB}
    with pytest.raises(PackingError, match=r"container 1: 10 instances .* 10485760 bytes of ram each"):
        _packing().pack(packable_topology({"words": 10}, config=config))


def test_refuses_an_option_with_an_unknown_unit() -> None:
    """The error names the option and the units."""
    with pytest.raises(ConfigError, match=r"packing\.instance_ram: '1 parsec' .* known: .*'gib'"):
        _packing(instance_ram="1 parsec")
