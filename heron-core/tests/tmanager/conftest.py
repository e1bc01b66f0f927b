"""A word count of two components in two containers, and a leader for it."""

from __future__ import annotations

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
from heron.planner.packing_plan import ContainerPlan, InstancePlan, PackingPlan, Resource


@pytest.fixture
def definition() -> TopologyDefinition:
    """word (1 task) -> count (2 tasks)."""
    stream = StreamDefinition("default", ("word",))
    grouping = GroupingDefinition(GroupingKind.FIELDS, ("word",))
    return TopologyDefinition(
        "wc",
        (
            ComponentDefinition("word", ComponentKind.SPOUT, "wc:Word", 1, (stream,)),
            ComponentDefinition(
                "count", ComponentKind.BOLT, "wc:Count", 2, (), (InputDefinition("word", "default", grouping),)
            ),
        ),
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
