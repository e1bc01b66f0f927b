"""A word count of two components in two containers."""

from __future__ import annotations

import pytest

from builders import bolt, spout, stream, subscription, topology
from heron.api.definition import GroupingKind, TopologyDefinition
from heron.planner.packing_plan import ContainerPlan, InstancePlan, PackingPlan, Resource


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
