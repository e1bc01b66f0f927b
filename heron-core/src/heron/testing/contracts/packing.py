"""The contract suite of the packing family: subclass `PackingContract` and say which driver it is for.

The cases are properties over generated topologies. They are the same in every run, and a driver that places by size
meets topologies that fit: containers are large enough in all but the cases that say otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

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
from heron.clock import monotonic_s
from heron.errors import ConfigError, PackingError
from heron.planner.packing_plan import PackingPlan, Resource
from heron.planner.packing_rules import check_packing
from heron.spi.packing import Packing
from heron.testing.contracts.driver import DriverContract

__all__ = ["PackingContract", "packable_topologies", "packable_topology"]

_GIB = 1 << 30
_COMPONENTS = st.lists(st.integers(1, 12), min_size=1, max_size=6)
_LARGE = 10_000
_LARGE_LIMIT_S = 2.0  # planning is a part of the time from the command to the first tuple

_PROPERTY = settings(
    max_examples=60,
    deadline=None,  # time has a case of its own; the machine may be busy here
    derandomize=True,
    database=None,
    # A driver is a value without state that changes, so one may serve many examples and many subclasses.
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors],
)


def packable_topology(
    parallelism: Mapping[str, int], containers: int = 1, config: Mapping[str, object] | None = None
) -> TopologyDefinition:
    """A topology with these components, the first of them a spout that all others read from."""
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
    """Topologies of one to six components with one to twelve instances each, in as many containers as can be."""
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


class PackingContract(DriverContract):
    """What every packing does. Set `driver_class` and `name`; override `options` where the driver needs some."""

    family = "packing"
    driver_class: type[Packing]

    @pytest.fixture
    def packing(self, options: dict[str, object]) -> Packing:
        """The driver under test."""
        return self.driver_class.open(options)

    @_PROPERTY
    @given(topology=packable_topologies())
    def test_places_every_instance_once(self, packing: Packing, topology: TopologyDefinition) -> None:
        """Routing and key groups stand on it: one task per index of each component, each in one container."""
        check_packing(packing.pack(topology), _parallelism(topology))

    @_PROPERTY
    @given(topology=packable_topologies())
    def test_numbers_tasks_and_containers_from_one(self, packing: Packing, topology: TopologyDefinition) -> None:
        """Ids without holes: container 0 is the topology manager's, and tasks index arrays in the engine."""
        plan = packing.pack(topology)
        tasks = sorted(instance.task_id for _, instance in plan.instances())
        assert tasks == list(range(1, sum(_parallelism(topology).values()) + 1))
        containers = [container.container_id for container in plan.containers]
        assert containers == list(range(1, len(containers) + 1))

    @_PROPERTY
    @given(topology=packable_topologies())
    def test_gives_each_container_room_for_its_instances(self, packing: Packing, topology: TopologyDefinition) -> None:
        """What a container requires is what the scheduler grants: less would make the kernel kill instances."""
        for container in packing.pack(topology).containers:
            needed = sum((instance.resource for instance in container.instances), Resource(0.0, 0, 0))
            assert needed.cpu <= container.required.cpu + 1e-9
            assert needed.ram_bytes <= container.required.ram_bytes
            assert needed.disk_bytes <= container.required.disk_bytes
            assert all(instance.resource.ram_bytes > 0 for instance in container.instances)

    @_PROPERTY
    @given(topology=packable_topologies(), ram_gib=st.integers(1, 40))
    def test_respects_the_largest_container(self, packing: Packing, topology: TopologyDefinition, ram_gib: int) -> None:
        """A container above the limit would wait for a machine that does not exist; an error says so at once."""
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
    @given(topology=packable_topologies())
    def test_packs_the_same_topology_the_same_way(self, packing: Packing, topology: TopologyDefinition) -> None:
        """A dry run shows the plan that the real run will have."""
        assert packing.pack(topology) == packing.pack(topology)

    @_PROPERTY
    @given(topology=packable_topologies())
    def test_leaves_a_plan_alone_when_nothing_changes(self, packing: Packing, topology: TopologyDefinition) -> None:
        """An update to the present parallelism must not restart anything."""
        plan = packing.pack(topology)
        assert packing.repack(plan, topology, {}) is plan
        assert packing.repack(plan, topology, _parallelism(topology)) is plan

    @_PROPERTY
    @given(topology=packable_topologies(), data=st.data())
    def test_keeps_the_tasks_that_stay(
        self, packing: Packing, topology: TopologyDefinition, data: st.DataObject
    ) -> None:
        """A task id names state, metrics and log files: it stays with its component and index over every change."""
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

    @pytest.mark.parametrize("parallelism", [0, -1, -(2**63)])
    def test_refuses_a_parallelism_below_one(self, packing: Packing, parallelism: int) -> None:
        """A component without instances would swallow its streams without a word."""
        topology = packable_topology({"words": 2, "count": 2})
        with pytest.raises(PackingError, match="count"):
            packing.repack(packing.pack(topology), topology, {"count": parallelism})

    def test_refuses_an_unknown_component_and_names_the_nearest(self, packing: Packing) -> None:
        """Most are typing mistakes; Heron ended in a null pointer here."""
        topology = packable_topology({"words": 2, "count": 2})
        with pytest.raises(PackingError, match=r"'coutn'.*'count'"):
            packing.repack(packing.pack(topology), topology, {"coutn": 3})

    def test_refuses_a_topology_without_components(self, packing: Packing) -> None:
        """There is nothing to place."""
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
            ("topology.container.ram", "0"),
        ],
    )
    def test_refuses_a_topology_key_it_cannot_use(self, packing: Packing, key: str, value: object) -> None:
        """A key that is ignored is a promise that silently does not hold; the error names it."""
        with pytest.raises((ConfigError, PackingError), match=re.escape(key)):
            packing.pack(packable_topology({"words": 2, "count": 2}, config={key: value}))

    def test_refuses_instances_that_fit_nowhere(self, packing: Packing) -> None:
        """One instance above the size of containers can never be placed, however many containers there are."""
        config = {"topology.component.rammap": f"count:{8 * _GIB}", "topology.container.ram": 4 * _GIB}
        with pytest.raises(PackingError, match=r"ram.*bytes"):
            packing.pack(packable_topology({"words": 2, "count": 2}, config=config))

    def test_packs_ten_thousand_instances_quickly(self, packing: Packing) -> None:
        """The largest topology is planned within a moment; what grows with the square would show here."""
        topology = packable_topology({f"component-{at}": _LARGE // 100 for at in range(100)}, containers=1_000)
        begun = monotonic_s()
        plan = packing.pack(topology)
        grown = packing.repack(plan, topology, {"component-0": 200})
        assert monotonic_s() - begun < 2 * _LARGE_LIMIT_S
        assert sum(1 for _ in grown.instances()) == _LARGE + 100


def _parallelism(topology: TopologyDefinition) -> dict[str, int]:
    return {component.name: component.parallelism for component in topology.components}


def _tasks(plan: PackingPlan) -> dict[int, tuple[str, int]]:
    return {instance.task_id: (instance.component, instance.component_index) for _, instance in plan.instances()}
