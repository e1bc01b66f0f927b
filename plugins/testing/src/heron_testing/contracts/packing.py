"""The contract suite of packings. Subclass `PackingContract` and name the driver.

The cases are properties over generated topologies, which are the same in every run. Containers are large enough for
each topology, except in the cases that test limits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from time import process_time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from heron.api.definition import (
    ComponentDefinition,
    ComponentKind,
    GroupingDefinition,
    GroupingKind,
    InputDefinition,
    StreamDefinition,
    TopologyDefinition,
)
from heron.errors import ConfigError, PackingError
from heron.planner.packing_plan import CPU_ROUNDING, NO_RESOURCE, ContainerPlan, PackingPlan, Resource, check_packing
from heron.spi.packing import Packing
from heron.state_nodes.plans import decode_packing_plan, encode_plan
from heron_testing.contracts.driver import DriverContract
from heron_testing.contracts.parts.packing_reference import disturbed, placements, repacked_round_robin, shrunk_by_score

__all__ = ["PackingContract", "limited_topologies", "packable_topologies", "packable_topology", "task_containers"]

_GIB = 1 << 30
_COMPONENTS = st.lists(st.integers(1, 12), min_size=1, max_size=6)
_LARGE_COMPONENTS = 100
_PARALLELISMS = (1, 3, 6, 12, 25, 50, 100)
_LARGE = _LARGE_COMPONENTS * _PARALLELISMS[-1]
_LARGE_LIMIT_S = 2.0  # planning delays the first tuple

_PROPERTY = settings(
    max_examples=60,
    deadline=None,  # another case measures time; the machine may be busy
    derandomize=True,
    database=None,
    # A driver has no changing state, so many examples and subclasses can share it.
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors],
)


def packable_topology(
    parallelism: Mapping[str, int], containers: int = 1, config: Mapping[str, object] | None = None
) -> TopologyDefinition:
    """Return a topology whose first component is a spout, and whose other components are bolts that read from it.

    `parallelism` maps components to numbers of instances. `containers` is ``topology.stmgrs``; `config` adds keys.
    """
    names = list(parallelism)
    source = InputDefinition(names[0], "default", GroupingDefinition(GroupingKind.SHUFFLE)) if names else None
    return TopologyDefinition(
        name="packed",
        components=tuple(
            ComponentDefinition(
                name=name,
                kind=ComponentKind.BOLT if at else ComponentKind.SPOUT,
                entry="module:Class",
                parallelism=parallelism[name],
                outputs=(StreamDefinition("default", ("value",)),),
                inputs=(source,) if at and source else (),
            )
            for at, name in enumerate(names)
        ),
        config={"topology.stmgrs": containers, **(config or {})},
    )


@st.composite
def packable_topologies(draw: st.DrawFn) -> TopologyDefinition:
    """Topologies of one to six components with one to twelve instances each, and at most one container per instance."""
    counts = draw(_COMPONENTS)
    parallelism = {f"component-{at}": count for at, count in enumerate(counts)}
    containers = draw(st.integers(1, sum(counts)))
    config: dict[str, object] = {}
    mapped = draw(st.lists(st.sampled_from(sorted(parallelism)), unique=True, max_size=len(parallelism)))
    if mapped:
        config["topology.component.rammap"] = ",".join(
            f"{name}:{draw(st.integers(1, 4)) * _GIB // 2}" for name in mapped
        )
    return packable_topology(parallelism, containers, config)


@st.composite
def limited_topologies(draw: st.DrawFn) -> TopologyDefinition:
    """Topologies with amounts of every resource for instances, padding and containers.

    Every instance fits into an empty container, with the padding. In half of them the amount of a container is its
    size (``topology.container.ram``), in the others its limit (``topology.container.max.ram.hint``).
    """
    topology = draw(packable_topologies())
    names = [component.name for component in topology.components]
    cores = {name: draw(st.sampled_from([0.1, 0.3, 1.0, 2.5])) for name in names}
    ram = {name: draw(st.integers(1, 8)) * _GIB // 4 for name in names}
    disk = {name: draw(st.integers(1, 8)) * _GIB // 4 for name in names}
    pattern = draw(st.sampled_from(["topology.container.{}", "topology.container.max.{}.hint"]))
    config: dict[str, object] = {
        "topology.component.cpumap": cores,
        "topology.component.rammap": ram,
        "topology.component.diskmap": disk,
        "topology.container.cpu.padding": 0.5,
        "topology.container.ram.padding": _GIB // 2,
        "topology.container.padding.percentage": draw(st.integers(0, 10)),
        pattern.format("cpu"): 4 + draw(st.integers(0, 40)) / 4,
        pattern.format("ram"): 3 * _GIB + draw(st.integers(0, 40)) * _GIB // 4,
        # No key sets the padding of disk, and the defaults of drivers differ.
        pattern.format("disk"): 16 * _GIB + draw(st.integers(0, 40)) * _GIB // 4,
    }
    return replace(topology, config={**topology.config, **config})


class PackingContract(DriverContract):
    """The cases for every packing. Set `driver_class` and `name`; override `options` if the driver needs options."""

    family = "packing"
    driver_class: type[Packing]

    @pytest.fixture
    def packing(self, options: dict[str, object]) -> Packing:
        """The driver under test."""
        return self.driver_class.open(options)

    @_PROPERTY
    @given(topology=packable_topologies())
    def test_places_every_instance_once(self, packing: Packing, topology: TopologyDefinition) -> None:
        """Routing and key groups need one task for each index of a component, in one container."""
        check_packing(packing.pack(topology), _parallelism(topology))

    @_PROPERTY
    @given(topology=packable_topologies())
    def test_numbers_tasks_and_containers_from_one(self, packing: Packing, topology: TopologyDefinition) -> None:
        """Container 0 is that of the topology manager, and tasks index arrays, so ids have no gaps."""
        plan = packing.pack(topology)
        tasks = sorted(instance.task_id for _, instance in plan.instances())
        assert tasks == list(range(1, sum(_parallelism(topology).values()) + 1))
        containers = [container.container_id for container in plan.containers]
        assert containers == list(range(1, len(containers) + 1))

    @_PROPERTY
    @given(topology=packable_topologies())
    def test_gives_each_container_room_for_its_instances(self, packing: Packing, topology: TopologyDefinition) -> None:
        """The scheduler grants what a container requires; with less, the kernel would kill instances."""
        for container in packing.pack(topology).containers:
            assert _within(_needed(container), container.required)
            assert all(instance.resource.ram_bytes > 0 for instance in container.instances)

    @_PROPERTY
    @given(topology=packable_topologies(), ram_gib=st.integers(1, 40))
    def test_respects_the_largest_container(self, packing: Packing, topology: TopologyDefinition, ram_gib: int) -> None:
        """A container above the limit would wait for a machine that does not exist, so packing must fail."""
        limit = ram_gib * _GIB
        limited = packable_topology(
            _parallelism(topology), config={**topology.config, "topology.container.max.ram.hint": limit}
        )
        try:
            plan = packing.pack(limited)
        except PackingError as error:
            assert str(limit) in str(error)  # noqa: PT017  # either outcome is right, for some of the examples each
        else:
            assert all(container.required.ram_bytes <= limit for container in plan.containers)

    @_PROPERTY
    @given(topology=st.one_of(packable_topologies(), limited_topologies()))
    def test_reports_the_largest_size_of_containers(self, packing: Packing, topology: TopologyDefinition) -> None:
        """`heron plan` shows how full containers are, so a plan must keep within `limits`."""
        try:
            plan = packing.pack(topology)
        except PackingError:
            return
        for container in plan.containers:
            for amount, limit in zip(container.required.amounts(), packing.limits(topology).amounts(), strict=True):
                assert limit is None or amount <= limit + CPU_ROUNDING

    @_PROPERTY
    @given(topology=limited_topologies(), data=st.data())
    def test_keeps_every_container_within_its_limits(
        self, packing: Packing, topology: TopologyDefinition, data: st.DataObject
    ) -> None:
        """Each resource with its padding, after packing and after changes; otherwise the error names the excess."""
        target = _parallelism(topology)
        try:
            plan = packing.pack(topology)
            _check_limits(plan, topology)
            for _ in range(3):
                change = data.draw(st.dictionaries(st.sampled_from(sorted(target)), st.integers(1, 20)))
                plan = packing.repack(plan, topology, change)
                _check_limits(plan, topology)
        except PackingError as error:
            # A driver may refuse to open more containers than the topology asks for.
            assert re.search(r"container.*\b(cores|bytes)\b", str(error))  # noqa: PT017

    @_PROPERTY
    @given(topology=packable_topologies())
    def test_packs_the_same_topology_the_same_way(self, packing: Packing, topology: TopologyDefinition) -> None:
        """`heron plan` shows the plan that the run will have."""
        assert packing.pack(topology) == packing.pack(topology)

    @_PROPERTY
    @given(topology=packable_topologies())
    def test_leaves_a_plan_alone_when_nothing_changes(self, packing: Packing, topology: TopologyDefinition) -> None:
        """An update to the present parallelism must not restart a task."""
        plan = packing.pack(topology)
        assert packing.repack(plan, topology, {}) is plan
        assert packing.repack(plan, topology, _parallelism(topology)) is plan

    @_PROPERTY
    @given(topology=packable_topologies(), data=st.data())
    def test_keeps_the_tasks_that_stay(
        self, packing: Packing, topology: TopologyDefinition, data: st.DataObject
    ) -> None:
        """A task id names state, metrics and log files, so it keeps its component and index over every change."""
        plan, target = packing.pack(topology), _parallelism(topology)
        ever = {instance.task_id for _, instance in plan.instances()}
        for _ in range(3):
            change = data.draw(st.dictionaries(st.sampled_from(sorted(target)), st.integers(1, 20)))
            target |= change
            before, plan = plan, packing.repack(plan, topology, change)
            check_packing(plan, target)
            kept = _tasks(before).keys() & _tasks(plan).keys()
            assert all(_tasks(before)[task] == _tasks(plan)[task] for task in kept)
            remaining = sum(min(count, target[name]) for name, count in before.parallelism().items())
            assert len(kept) == remaining
            assert not (_tasks(plan).keys() - kept) & ever, "a task id was used again"
            ever |= _tasks(plan).keys()

    @_PROPERTY
    @given(topology=packable_topologies(), data=st.data())
    def test_disturbs_no_more_than_heron(
        self, packing: Packing, topology: TopologyDefinition, data: st.DataObject
    ) -> None:
        """A task that moves replays its tuples, so only necessary moves are allowed."""
        plan, target = packing.pack(topology), _parallelism(topology)
        for _ in range(3):
            change = data.draw(st.dictionaries(st.sampled_from(sorted(target)), st.integers(1, 20)))
            target |= change
            before, plan = plan, packing.repack(plan, topology, change)
            ours = disturbed(before, placements(plan))
            assert ours <= disturbed(before, shrunk_by_score(before, target))
            assert ours <= disturbed(before, repacked_round_robin(before, topology, target))

    @_PROPERTY
    @given(topology=packable_topologies())
    def test_makes_room_again_where_it_was(self, packing: Packing, topology: TopologyDefinition) -> None:
        """A change starts from the stored plan; after a scale-down to one instance no container is empty."""
        plan = decode_packing_plan(encode_plan(packing.pack(topology)), "test")
        least = dict.fromkeys(_parallelism(topology), 1)
        shrunk = packing.repack(plan, topology, least)
        check_packing(shrunk, least)
        check_packing(packing.repack(shrunk, topology, _parallelism(topology)), _parallelism(topology))

    @_PROPERTY
    @given(topology=limited_topologies(), data=st.data())
    def test_gives_the_number_of_containers_that_is_asked_for(
        self, packing: Packing, topology: TopologyDefinition, data: st.DataObject
    ) -> None:
        """Each instance stays there once, spouts do not move, and no id is used again; or the error says why not."""
        target, spout = _parallelism(topology), topology.components[0].name
        count = data.draw(st.integers(0, 1 + sum(target.values())))
        change = data.draw(st.dictionaries(st.sampled_from(sorted(target)), st.integers(1, 20)))
        try:
            before = packing.pack(topology)
            after = packing.repack_into(before, topology, change, count)
        except PackingError as error:
            assert re.search(r"container", str(error))  # noqa: PT017
            return
        assert len(after.containers) == count
        check_packing(after, target | change)
        _check_limits(after, topology)
        kept = _tasks(before).keys() & _tasks(after).keys()
        assert all(_tasks(before)[task] == _tasks(after)[task] for task in kept)
        assert all(task_containers(before)[task] == task_containers(after)[task] for task in kept)
        spouts = min(target[spout], change.get(spout, target[spout]))
        assert sum(_tasks(before)[task][0] == spout for task in kept) == spouts

    def test_refuses_a_plan_of_another_topology(self, packing: Packing) -> None:
        """A component in only one of the two would be lost without an error."""
        plan = packing.pack(packable_topology({"words": 1, "count": 1}))
        with pytest.raises(PackingError, match=r"'count', 'words'.* topology 'packed' has 'words'"):
            packing.repack(plan, packable_topology({"words": 1}), {"words": 2})

    def test_refuses_a_plan_that_was_changed_by_hand(self, packing: Packing) -> None:
        """A change of a plan with one task in two containers would give another wrong plan."""
        topology = packable_topology({"words": 2, "count": 2})
        plan = packing.pack(topology)
        twice = replace(plan, containers=(*plan.containers, replace(plan.containers[0], container_id=7)))
        with pytest.raises(PackingError, match="container 7, task 1"):
            packing.repack(twice, topology, {"count": 3})

    @pytest.mark.parametrize("parallelism", [0, -1, -(2**63)])
    def test_refuses_a_parallelism_below_one(self, packing: Packing, parallelism: int) -> None:
        """A component without instances would lose its streams without an error."""
        topology = packable_topology({"words": 2, "count": 2})
        with pytest.raises(PackingError, match="count"):
            packing.repack(packing.pack(topology), topology, {"count": parallelism})

    def test_refuses_an_unknown_component_and_names_the_nearest(self, packing: Packing) -> None:
        """Most unknown names are typing mistakes; Heron ended with a null pointer here."""
        topology = packable_topology({"words": 2, "count": 2})
        with pytest.raises(PackingError, match=r"'coutn'.*'count'"):
            packing.repack(packing.pack(topology), topology, {"coutn": 3})

    def test_refuses_a_topology_without_components(self, packing: Packing) -> None:
        """There is no instance to place."""
        with pytest.raises(PackingError):
            packing.pack(packable_topology({}))

    @pytest.mark.parametrize(
        ("key", "value"),
        [
            ("topology.stmgrs", 0),
            ("topology.stmgrs", "many"),
            ("topology.component.rammap", "count"),
            ("topology.component.rammap", "count:lots"),
            ("topology.component.rammap", "count:-5"),
            ("topology.component.rammap", "coutn:1073741824"),
            ("topology.component.rammap", ["count"]),
            ("topology.component.cpumap", "count:nan"),
            ("topology.component.diskmap", "count:1 parsec"),
            ("topology.container.ram", "0"),
            ("topology.container.max.instances", 0),
            ("topology.container.padding.percentage", 101),
        ],
    )
    def test_refuses_a_topology_key_it_cannot_use(self, packing: Packing, key: str, value: object) -> None:
        """A key without effect would mislead its author, so the error names it."""
        with pytest.raises((ConfigError, PackingError), match=re.escape(key)):
            packing.pack(packable_topology({"words": 2, "count": 2}, config={key: value}))

    def test_refuses_instances_that_fit_nowhere(self, packing: Packing) -> None:
        """An instance above the size of containers fits into no number of containers."""
        config = {"topology.component.rammap": f"count:{8 * _GIB}", "topology.container.ram": 4 * _GIB}
        with pytest.raises(PackingError, match=r"ram.*bytes"):
            packing.pack(packable_topology({"words": 2, "count": 2}, config=config))

    @pytest.mark.parametrize("sizes", [1, 100])
    def test_packs_ten_thousand_instances_quickly(self, packing: Packing, sizes: int) -> None:
        """The largest topology is planned in 2 s.

        Smaller topologies come first, so that a packing whose time grows with the square fails after seconds.
        """
        for parallelism in _PARALLELISMS:
            instances = _LARGE_COMPONENTS * parallelism
            ram = {f"component-{at}": _GIB // 2 + at % sizes * 2**20 for at in range(_LARGE_COMPONENTS)}
            topology = packable_topology(
                dict.fromkeys(ram, parallelism),
                containers=instances // 10,
                config={"topology.component.rammap": ram},
            )
            with _quick(f"packing {instances:,} instances", _LARGE_LIMIT_S):
                plan = packing.pack(topology)
            with _quick(f"halving and doubling {instances:,} instances", 2 * _LARGE_LIMIT_S):
                halved = packing.repack(plan, topology, dict.fromkeys(ram, max(1, parallelism // 2)))
                grown = packing.repack(halved, topology, dict.fromkeys(ram, parallelism))
            assert sum(1 for _ in grown.instances()) == instances


def task_containers(plan: PackingPlan) -> dict[int, int]:
    """Return the container of each task of a plan."""
    return {instance.task_id: container_id for container_id, instance in plan.instances()}


@contextmanager
def _quick(what: str, limit_s: float) -> Iterator[None]:
    """Fail when the block takes more than its limit of processor time; the time of other programs does not count."""
    start_s = process_time()
    yield
    taken_s = process_time() - start_s
    assert taken_s < limit_s, f"{what} took {taken_s:.1f} s; the limit for {_LARGE:,} instances is {limit_s:g} s"


def _check_limits(plan: PackingPlan, topology: TopologyDefinition) -> None:
    config = topology.config
    sized = "topology.container.ram" in config
    pattern = "topology.container.{}" if sized else "topology.container.max.{}.hint"
    cpu, ram_bytes, disk_bytes = (config[pattern.format(name)] for name in ("cpu", "ram", "disk"))
    assert isinstance(cpu, float)
    assert isinstance(ram_bytes, int)
    assert isinstance(disk_bytes, int)
    # In a container of a given size a driver may use the padding for instances, with a warning.
    padding = NO_RESOURCE if sized else Resource(0.5, _GIB // 2, 0)
    for container in plan.containers:
        assert _within(container.required, Resource(cpu, ram_bytes, disk_bytes))
        assert _within(_needed(container) + padding, container.required)


def _needed(container: ContainerPlan) -> Resource:
    return sum((instance.resource for instance in container.instances), NO_RESOURCE)


def _within(amount: Resource, limit: Resource) -> bool:
    rounding = Resource(CPU_ROUNDING, 0, 0)
    return all(one <= most for one, most in zip(amount.amounts(), (limit + rounding).amounts(), strict=True))


def _parallelism(topology: TopologyDefinition) -> dict[str, int]:
    return {component.name: component.parallelism for component in topology.components}


def _tasks(plan: PackingPlan) -> dict[int, tuple[str, int]]:
    return {instance.task_id: (instance.component, instance.component_index) for _, instance in plan.instances()}
