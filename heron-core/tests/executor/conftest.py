"""A packing plan for the tests of the executor."""

from __future__ import annotations

import pytest

from heron.planner.packing_plan import ContainerPlan, InstancePlan, PackingPlan, Resource


@pytest.fixture
def packing() -> PackingPlan:
    """Two instances in container 1, one in container 2."""
    resource = Resource(1.0, 1 << 30, 1 << 30)
    return PackingPlan(
        "plan",
        (
            ContainerPlan(1, (InstancePlan("word", 1, 0, resource), InstancePlan("count", 2, 0, resource)), resource),
            ContainerPlan(2, (InstancePlan("count", 3, 1, resource),), resource),
        ),
    )
