"""A word count of two components in two containers."""

from __future__ import annotations

import pytest

from heron.api.definition import GroupingKind, TopologyDefinition
from heron.planner.packing_plan import ContainerPlan, InstancePlan, PackingPlan, Resource
from heron_testing.builders import bolt, spout, stream, subscription, topology


@pytest.fixture
def definition() -> TopologyDefinition:
    """word (1 task) -> count (2 tasks)."""
    return topology(
        spout("word", stream("word"), entry="wc:Word"),
        bolt("count", subscription("word", GroupingKind.FIELDS, "word"), parallelism=2, entry="wc:Count"),
        name="wc",
    )


@pytest.fixture
def packing() -> PackingPlan:
    """word 1 and count 2 in container 1, count 3 in container 2."""
    resource = Resource(1.0, 1 << 30, 1 << 30)
    return PackingPlan(
        "plan",
        (
            ContainerPlan(1, (InstancePlan("word", 1, 0, resource), InstancePlan("count", 2, 0, resource)), resource),
            ContainerPlan(2, (InstancePlan("count", 3, 1, resource),), resource),
        ),
    )


@pytest.fixture
def larger(packing: PackingPlan) -> PackingPlan:
    """The same with count 4 in container 3."""
    resource = Resource(1.0, 1 << 30, 1 << 30)
    added = ContainerPlan(3, (InstancePlan("count", 4, 2, resource),), resource)
    return PackingPlan("larger", (*packing.containers, added), 4)


@pytest.fixture
def smaller(packing: PackingPlan) -> PackingPlan:
    """The same without count 3 and its container 2."""
    return PackingPlan("smaller", packing.containers[:1], 3)
