"""The physical plan of a simulated topology: tasks dealt to imagined containers in turn, and no stream managers.

Key groups go by component index and not by task id, so a key reaches the task with the same index as on processes,
whatever the packing there is.
"""

from __future__ import annotations

from heron.api.api_constants import TOPOLOGY_STMGRS
from heron.api.config import setting
from heron.api.definition import TopologyDefinition
from heron.planner.amounts import parse_count
from heron.planner.physical_plan import PhysicalPlan, TaskPlan, TopologyState

__all__ = ["place"]


def place(definition: TopologyDefinition) -> PhysicalPlan:
    """A plan with task ids from 1 in the order of declaration.

    Raises:
        ConfigError: when `topology.stmgrs` is no positive integer.
    """
    containers = parse_count(setting(definition.config, TOPOLOGY_STMGRS), TOPOLOGY_STMGRS)
    named = [(each.name, index) for each in definition.components for index in range(each.parallelism)]
    tasks = tuple(
        TaskPlan(number + 1, component, index, number % containers + 1)
        for number, (component, index) in enumerate(named)
    )
    return PhysicalPlan(
        version=1,
        epoch=1,
        topology_id=definition.name,
        topology=definition,
        state=TopologyState.RUNNING,
        tasks=tasks,
        stmgrs=(),
    )
