"""Makes a physical plan of its three parts: what runs (topology), what goes together (packing), where that is now."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from heron.api.definition import TopologyDefinition
from heron.errors import PackingError
from heron.planner.packing_plan import PackingPlan
from heron.planner.packing_rules import check_packing
from heron.planner.physical_plan import PhysicalPlan, StreamManagerLocation, TaskPlan, TopologyState

__all__ = ["at_parallelism_of", "physical_plan"]


def physical_plan(
    packing: PackingPlan,
    definition: TopologyDefinition,
    stmgrs: Iterable[StreamManagerLocation],
    *,
    version: int,
    epoch: int,
    topology_id: str,
    state: TopologyState,
) -> PhysicalPlan:
    """The plan with tasks in order of id and stream managers in order of container.

    Its topology has the parallelism of the packing plan, which is the newer of the two after an update. A container
    without a stream manager among `stmgrs` is one that is not there at the moment.

    Raises:
        PackingError: when the packing plan does not hold the rules, packs another topology, or a stream manager
            stands for a container that the packing plan does not have.
    """
    topology = at_parallelism_of(packing, definition)
    check_packing(packing, {component.name: component.parallelism for component in topology.components})
    located = {stmgr.container_id: stmgr for stmgr in stmgrs}
    packed = {container.container_id for container in packing.containers}
    for container_id in located:
        if container_id not in packed:
            msg = f"packing plan {packing.id!r}: has no container {container_id}, whose stream manager registered"
            raise PackingError(msg)
    tasks = sorted(
        (
            TaskPlan(instance.task_id, instance.component, instance.component_index, container_id)
            for container_id, instance in packing.instances()
        ),
        key=lambda task: task.task_id,
    )
    return PhysicalPlan(
        version=version,
        epoch=epoch,
        topology_id=topology_id,
        topology=topology,
        state=state,
        tasks=tuple(tasks),
        stmgrs=tuple(located[container_id] for container_id in sorted(located)),
    )


def at_parallelism_of(packing: PackingPlan, definition: TopologyDefinition) -> TopologyDefinition:
    """The definition with each component's parallelism as the packing plan has it.

    Raises:
        PackingError: when a component has no instance in the packing plan.
    """
    counts = packing.parallelism()
    for component in definition.components:
        if component.name not in counts:
            msg = f"packing plan {packing.id!r}: component {component.name!r} of {definition.name!r} has no instance"
            raise PackingError(msg)
    if all(component.parallelism == counts[component.name] for component in definition.components):
        return definition
    return replace(
        definition,
        components=tuple(
            component
            if component.parallelism == counts[component.name]
            else replace(component, parallelism=counts[component.name])
            for component in definition.components
        ),
    )
