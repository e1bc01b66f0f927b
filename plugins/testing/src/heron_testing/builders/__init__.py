"""Builds topologies and plans for tests.

A test states only what matters to it; every other value has a default. Tests that use these builders do not change when
a definition gets a field.
"""

from heron_testing.builders.plans import physical_plan, plan_index, stmgr_locations
from heron_testing.builders.topologies import bolt, spout, stream, subscription, topology

__all__ = ["bolt", "physical_plan", "plan_index", "spout", "stmgr_locations", "stream", "subscription", "topology"]
