"""Physical plans: where the tasks and the stream managers of a topology run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from heron.api.definition import TopologyDefinition
from heron.planner.physical_plan import PhysicalPlan, PlanIndex, StreamManagerLocation, TaskPlan, TopologyState

__all__ = ["physical_plan", "plan_index", "stmgr_locations"]


def physical_plan(
    definition: TopologyDefinition,
    tasks: Mapping[str, Sequence[int]] | None = None,
    *,
    containers: Mapping[int, int] | None = None,
    stmgrs: Iterable[StreamManagerLocation] = (),
    version: int = 1,
    epoch: int = 1,
    state: TopologyState = TopologyState.RUNNING,
) -> PhysicalPlan:
    """The plan of a topology whose run has the id ``NAME-1``.

    Args:
        definition: the topology.
        tasks: the task ids of each component, by component index. Without them, tasks are numbered from 1 in the order
            of declaration.
        containers: the container of each task id; tasks that are not listed are in container 1.
        stmgrs: the stream managers that have registered.
        version: the version of the plan.
        epoch: the epoch of the leader that made it.
        state: the state of the topology.
    """
    placed = _numbered(definition) if tasks is None else tasks
    containers = containers or {}
    plans = tuple(
        TaskPlan(task_id, component, index, containers.get(task_id, 1))
        for component, ids in placed.items()
        for index, task_id in enumerate(ids)
    )
    return PhysicalPlan(version, epoch, f"{definition.name}-1", definition, state, plans, tuple(stmgrs))


def plan_index(
    definition: TopologyDefinition,
    tasks: Mapping[str, Sequence[int]] | None = None,
    *,
    containers: Mapping[int, int] | None = None,
    stmgrs: Iterable[StreamManagerLocation] = (),
) -> PlanIndex:
    """The index of a first plan; the arguments are those of `physical_plan`."""
    return PlanIndex(physical_plan(definition, tasks, containers=containers, stmgrs=stmgrs))


def stmgr_locations(*containers: int) -> tuple[StreamManagerLocation, ...]:
    """A stream manager for each of these containers, at an address that nobody connects to."""
    return tuple(StreamManagerLocation(container, 0, "e", "h", 1) for container in containers)


def _numbered(definition: TopologyDefinition) -> dict[str, range]:
    tasks: dict[str, range] = {}
    following = 1
    for component in definition.components:
        tasks[component.name] = range(following, following + component.parallelism)
        following += component.parallelism
    return tasks
