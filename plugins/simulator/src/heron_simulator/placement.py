"""The physical plan of a simulated topology: tasks in imagined containers, in turn, and no stream managers.

Key groups depend on the component index and not on the task id. A key therefore reaches the task with the same index as
on processes, with any packing.
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
        ConfigError: when `topology.stmgrs` is not a positive integer.
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
