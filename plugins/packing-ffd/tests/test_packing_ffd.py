"""First fit decreasing: its contract, the placement of instances, and refusals."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from heron.api.definition import TopologyDefinition
from heron.errors import ConfigError, PackingError
from heron.planner.packing_plan import PackingPlan, Resource
from heron_packing_ffd import FirstFitDecreasingPacking
from heron_testing.contracts.packing import PackingContract, limited_topologies, packable_topology, task_containers

_MIB = 1 << 20
_GIB = 1 << 30
_LARGE = {
    "topology.container.cpu": 100.0,
    "topology.container.ram": 100 * _GIB,
    "topology.container.disk": 100 * _GIB,
}
_PACKING = FirstFitDecreasingPacking.open({})


class TestContract(PackingContract):
    """First fit decreasing meets the contract of the family."""

    name = "ffd"
    driver_class = FirstFitDecreasingPacking


def _components(plan: PackingPlan) -> dict[int, list[str]]:
    return {container.container_id: [each.component for each in container.instances] for container in plan.containers}


def test_needs_the_minimum_of_containers_with_the_defaults() -> None:
    """With Heron's defaults a container has ten cores, one of them for the engine. `topology.stmgrs` is not used."""
    plan = _PACKING.pack(packable_topology({"words": 10, "count": 9}, containers=7))
    assert [len(container.instances) for container in plan.containers] == [9, 9, 1]
    assert plan.containers[0].required == Resource(10.0, 10 * _GIB, 10 * _GIB)
    assert plan.containers[2].required == Resource(2.0, 2 * _GIB, 2 * _GIB)


def test_fills_gaps_with_small_instances() -> None:
    """The largest instances open containers. Smaller instances go into the first gap that is large enough."""
    config = {"topology.component.rammap": "big:5GB,middle:3GB,small:1GB", "topology.container.ram": 9 * _GIB}
    plan = _PACKING.pack(packable_topology({"small": 2, "middle": 2, "big": 2}, config=config))
    assert _components(plan) == {1: ["big", "middle"], 2: ["big", "middle"], 3: ["small", "small"]}
    assert [container.required.ram_bytes for container in plan.containers] == [9 * _GIB, 9 * _GIB, 3 * _GIB]


def test_cpu_first_sorts_by_cores() -> None:
    """If cores are scarce, they decide the order instead of memory."""
    config = {"topology.component.rammap": "words:2GB", "topology.component.cpumap": "count:4"}
    parallelism = {"words": 1, "count": 1}
    by_ram = _PACKING.pack(packable_topology(parallelism, config=config))
    by_cpu = _PACKING.pack(
        packable_topology(parallelism, config={**config, "topology.packing.ffd.sorting.strategy": "CPU_FIRST"})
    )
    assert (_components(by_ram), _components(by_cpu)) == ({1: ["words", "count"]}, {1: ["count", "words"]})


def test_refuses_an_unknown_sorting_strategy() -> None:
    """A misspelt strategy must not select the default silently."""
    config = {"topology.packing.ffd.sorting.strategy": "RAM_FRIST"}
    with pytest.raises(ConfigError, match=r"sorting\.strategy: 'RAM_FRIST' .*nearest: 'RAM_FIRST'"):
        _PACKING.pack(packable_topology({"words": 1}, config=config))


def test_padding_is_the_larger_of_amount_and_percentage() -> None:
    """The amount protects the engine in a small container, the percentage in a large container."""

    def required_ram(**config: int) -> int:
        topology = packable_topology({"words": 1}, config={"topology.container.ram": 20 * _GIB, **config})
        return _PACKING.pack(topology).containers[0].required.ram_bytes

    assert required_ram() == 3 * _GIB
    assert required_ram(**{"topology.container.ram.padding": 4 * _GIB}) == 5 * _GIB
    assert required_ram(**{"topology.container.padding.percentage": 0}) == 2 * _GIB


def test_keeps_the_maximum_number_of_instances_in_a_container() -> None:
    """Each instance is a process and uses the stream manager, however small its resources are."""
    config = {**_LARGE, "topology.container.max.instances": 4}
    plan = _PACKING.pack(packable_topology({"words": 9}, config=config))
    assert [len(container.instances) for container in plan.containers] == [4, 4, 1]


def test_ten_tenths_of_a_core_are_one_core() -> None:
    """Sums of floats are not exact; a container must not stay half empty because of that."""
    config = {**_LARGE, "topology.component.cpumap": "words:0.1", "topology.container.cpu": 2.0}
    assert len(_PACKING.pack(packable_topology({"words": 10}, config=config)).containers) == 1


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            {"topology.component.rammap": "words:100MB"},
            r"'words' requests 104857600 bytes of ram per instance, below the minimum of 201326592 bytes; raise",
        ),
        ({"topology.component.cpumap": "words:0.05"}, r"'words' requests 0\.05 cores of cpu .* minimum of 0\.1 cores"),
        (
            {"topology.component.cpumap": "words:9.5"},
            r"'words' requests 9\.5 cores .* room for 9\.0 cores: 10\.0 cores \(10 times packing\.instance_cpu\)",
        ),
        (
            {"topology.component.diskmap": "words:8GB", "topology.container.max.disk.hint": 8 * _GIB},
            r"8589934592 bytes of disk .* \(topology\.container\.max\.disk\.hint\) minus a padding of 1073741824 bytes",
        ),
        (
            {"topology.container.ram": 4 * _GIB, "topology.container.max.ram.hint": 2 * _GIB},
            r"topology\.container\.ram is 4294967296 bytes, more than .*\.max\.ram\.hint, 2147483648 bytes; raise",
        ),
    ],
)
def test_error_has_the_amount_the_limit_and_the_key(config: dict[str, object], message: str) -> None:
    """The message also has the component, the unit and the source of the limit."""
    with pytest.raises(PackingError, match=message):
        _PACKING.pack(packable_topology({"words": 1}, config=config))


@settings(max_examples=60)
@given(topology=limited_topologies())
def test_packs_every_topology_whose_instances_fit_a_container(topology: TopologyDefinition) -> None:
    """The packing can always open another container."""
    assert _PACKING.pack(topology).containers


def test_a_new_instance_goes_into_the_first_gap() -> None:
    """A removed instance can leave a gap. No remaining instance moves."""
    topology = packable_topology({"words": 12, "count": 6})
    plan = _PACKING.pack(topology)
    shrunk = _PACKING.repack(plan, topology, {"words": 8})
    assert [len(container.instances) for container in shrunk.containers] == [8, 6]
    grown = _PACKING.repack(shrunk, topology, {"count": 8})
    assert [len(container.instances) for container in grown.containers] == [9, 7]
    before, after = task_containers(plan), task_containers(grown)
    assert all(after[task_id] == before[task_id] for task_id in before.keys() & after.keys())
    assert sorted(after.keys() - before.keys()) == [19, 20]


def test_reuses_the_id_of_an_empty_container() -> None:
    """Heron assumes that the highest id is the number of containers, and then refuses to grow."""
    config = {**_LARGE, "topology.container.max.instances": 1}
    topology = packable_topology({"words": 1, "count": 1, "join": 2}, config=config)
    plan = _PACKING.pack(topology)
    assert [container.container_id for container in plan.containers] == [1, 2, 3, 4]
    shrunk = _PACKING.repack(plan, topology, {"join": 1})
    grown = _PACKING.repack(shrunk, topology, {"count": 3})
    assert [container.container_id for container in shrunk.containers] == [1, 2, 3]
    assert [container.container_id for container in grown.containers] == [1, 2, 3, 4, 5]


def test_remaining_instances_keep_their_resources() -> None:
    """New defaults apply only to new instances."""
    topology = packable_topology({"words": 2})
    plan = FirstFitDecreasingPacking.open({"instance_ram": "512MB"}).pack(topology)
    grown = _PACKING.repack(plan, topology, {"words": 3})
    assert [each.resource.ram_bytes // _MIB for _, each in grown.instances()] == [512, 512, 1024]


def test_refuses_unknown_options() -> None:
    """The error names the nearest key."""
    with pytest.raises(ConfigError, match=r"packing\.instance_rm: unknown key \(nearest: 'instance_ram'\)"):
        FirstFitDecreasingPacking.open({"instance_rm": "1GB"})
    with pytest.raises(ConfigError, match=r"packing\.container_padding_percentage: 101.0 is not a percentage"):
        FirstFitDecreasingPacking.open({"container_padding_percentage": 101})
