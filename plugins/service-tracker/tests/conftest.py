"""Values as watches take them, for tests of what is made from them."""

from __future__ import annotations

from collections.abc import Callable

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
from heron.ipc.documents.status import ComponentStatus, LeaderStatus, ProcessStatus, TaskStatus
from heron.planner.packing_plan import ContainerPlan, InstancePlan, PackingPlan, Resource
from heron.planner.physical_plan import PhysicalPlan, StreamManagerLocation, TaskPlan, TopologyState
from heron_cli.client import MetricsRow, TopologyEntry, TopologyPlans, TopologyStatus
from heron_service_tracker.watches.observations import Observations
from heron_testing.fake_clock import FakeClock


def entry(name: str = "words", state: str = "running") -> TopologyEntry:
    """An entry of a cluster's list."""
    return TopologyEntry(name, f"{name}-1", "crew", "prod", state, 1000.0, 2, 2, "ann", "h1", "local", "/logs", "0.1.0")


def status(name: str = "words", state: str = "running", **changes: object) -> TopologyStatus:
    """A status with a spout and a bolt of one task each."""
    fields: dict[str, object] = {
        "plan_version": 1,
        "components": (
            ComponentStatus("lines", "spout", 1, emitted=100, rate_per_s=10.0),
            ComponentStatus("count", "bolt", 1, executed=90, acked=90, rate_per_s=9.0),
        ),
        "tasks": (TaskStatus(1, "lines", 1, "running", 1), TaskStatus(2, "count", 1, "running", 1)),
        "processes": (
            ProcessStatus(1, "lines-1", "running", 11, 1, 1, host="h1"),
            ProcessStatus(1, "count-2", "running", 12, 1, 2, host="h1"),
        ),
        "leader": LeaderStatus(0, 10, "h1", 1, 1000.0),
    }
    return TopologyStatus(name, f"{name}-1", state, 1000.0, **{**fields, **changes})  # type: ignore[arg-type]


def plans(name: str = "words") -> TopologyPlans:
    """The plans of that topology, with a password in its configuration."""
    outputs = (StreamDefinition("default", ("line",)),)
    lines = ComponentDefinition("lines", ComponentKind.SPOUT, "words:Lines", 1, outputs, (), {"db.password": "s"})
    grouping = GroupingDefinition(GroupingKind.FIELDS, ("line",))
    count = ComponentDefinition(
        "count", ComponentKind.BOLT, "words:Count", 1, (), (InputDefinition("lines", "default", grouping),)
    )
    definition = TopologyDefinition(name, (lines, count), {"topology.name": name})
    resource = Resource(1.0, 512, 1024)
    instances = (InstancePlan("lines", 1, 0, resource), InstancePlan("count", 2, 0, resource))
    packing = PackingPlan("p1", (ContainerPlan(1, instances, Resource(2.0, 1024, 2048)),))
    tasks = (TaskPlan(1, "lines", 0, 1), TaskPlan(2, "count", 0, 1))
    managers = (StreamManagerLocation(1, 1, "tcp://h1:9", "h1", 9),)
    physical = PhysicalPlan(1, 1, f"{name}-1", definition, TopologyState.RUNNING, tasks, managers)
    return TopologyPlans(definition, packing, physical)


def metrics(emitted: float = 100.0) -> tuple[MetricsRow, ...]:
    """A counter of each task, and one of the stream manager."""
    return (
        MetricsRow("lines", 1, "lines-1", "emit-count", "counter", "tuples", emitted, {}, 10.0),
        MetricsRow("count", 2, "count-2", "execute-count", "counter", "tuples", emitted, {}, 9.0),
        MetricsRow("", 0, "stmgr-1", "late-s", "gauge", "s", 0.01),
    )


@pytest.fixture
def clock() -> FakeClock:
    """The clock of the observations."""
    return FakeClock()


@pytest.fixture
def observations(clock: FakeClock) -> Observations:
    """Two clusters, of which `near` has a topology that answered, and `far` never answered."""
    found = Observations(("near", "far"), clock)
    found.put_list("near", [entry()])
    found.put_status("near", status(), metrics())
    found.put_plans("near", "words", plans())
    return found


@pytest.fixture
def make_entry() -> Callable[..., TopologyEntry]:
    """Makes an entry of a cluster's list."""
    return entry


@pytest.fixture
def make_status() -> Callable[..., TopologyStatus]:
    """Makes a status with a spout and a bolt of one task each."""
    return status


@pytest.fixture
def make_metrics() -> Callable[..., tuple[MetricsRow, ...]]:
    """Makes a counter of each task, and one row of the stream manager."""
    return metrics
