"""An update of a running topology: the difference of two packing plans, and the packing plans in its phases. Pure.

The packing has chosen which instances leave and where new ones go (`heron.spi.packing.Packing.repack`). This module
finds the added and removed tasks by their ids, and the owners of key groups after the update.

During an update the packing plan has the instances of the old and of the new plan (`merged`), so that every container
starts all members. At the end the removed instances leave it (`without`); a withdrawn update takes the added ones back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from heron.api.definition import ComponentDefinition, GroupingKind
from heron.planner.code_change import at_package
from heron.planner.key_owners import KeyOwners, owners_after
from heron.planner.packing_plan import ContainerPlan, PackingPlan, Resource, fingerprint
from heron.planner.physical_plan import PhysicalPlan, PlanIndex, PlanUpdate, UpdatePhase, at_parallelism_of

__all__ = ["has_key_groups", "merged", "planned_update", "reconciled", "without"]

_KEYED = (GroupingKind.FIELDS, GroupingKind.PARTIAL_KEY)


def has_key_groups(component: ComponentDefinition) -> bool:
    """Whether a grouping sends tuples to the tasks of this component by their key."""
    return any(each.grouping.kind in _KEYED for each in component.inputs)


def planned_update(index: PlanIndex, target: PackingPlan, number: int) -> PlanUpdate:
    """The first phase of the update from the plan of `index` to `target`."""
    places = {instance.task_id: instance.component for _, instance in target.instances()}
    added = tuple(sorted(places.keys() - index.tasks.keys()))
    removed = tuple(sorted(index.tasks.keys() - places.keys()))
    tasks: dict[str, list[int]] = {}
    for _, instance in sorted(target.instances(), key=lambda each: each[1].component_index):
        tasks.setdefault(instance.component, []).append(instance.task_id)
    heirs = _heirs(index, target, removed)
    owners = {
        component.name: KeyOwners.of(_owners(index, component.name, tasks[component.name], heirs))
        for component in index.plan.topology.components
        if has_key_groups(component) and tuple(tasks[component.name]) != index.tasks_of(component.name)
    }
    return PlanUpdate(number, UpdatePhase.PREPARE, target.id, added, removed, owners)


def merged(current: PackingPlan, target: PackingPlan) -> PackingPlan:
    """The plan with the containers and instances of both; a container of both needs the larger of its resources."""
    containers = {each.container_id: each for each in current.containers}
    for each in target.containers:
        known = containers.get(each.container_id)
        containers[each.container_id] = _merged(known, each) if known else each
    return _plan([containers[container_id] for container_id in sorted(containers)], max(_last(current), _last(target)))


def without(packing: PackingPlan, task_ids: Collection[int]) -> PackingPlan:
    """The plan without these tasks and without containers that are empty then. Their ids are not used again."""
    containers = []
    for container in packing.containers:
        kept = tuple(each for each in container.instances if each.task_id not in task_ids)
        if kept:
            containers.append(ContainerPlan(container.container_id, kept, container.required))
    return _plan(containers, _last(packing))


def reconciled(plan: PhysicalPlan, packing: PackingPlan) -> tuple[PhysicalPlan, PackingPlan]:
    """What a new leader makes of the plan and the packing plan of a former one, which may have died between two writes.

    The physical plan is always written first, so its tasks are right. There is one exception: the packing plan may not
    have the tasks yet that an update adds. Then their resources are not known, and the update is withdrawn. The end of
    a change of the code is in the physical plan alone: then all instances get its package.
    """
    packed = {instance.task_id for _, instance in packing.instances()}
    if plan.update is not None and not packed.issuperset(plan.update.added):
        kept = tuple(task for task in plan.tasks if task.task_id not in plan.update.added)
        plan = replace(plan, tasks=kept, topology=at_parallelism_of(packing, plan.topology), update=None)
    if plan.code is None:
        packing = at_package(packing, plan.package)
    strange = packed - {task.task_id for task in plan.tasks}
    return plan, without(packing, strange) if strange else packing


def _owners(index: PlanIndex, component: str, tasks: Sequence[int], heirs: Mapping[int, int]) -> Sequence[int]:
    """The owners after the update. If the tasks are the same except those that move, no group goes elsewhere."""
    owners = [heirs.get(each, each) for each in index.key_owners(component)]
    same = {heirs.get(each, each) for each in index.tasks_of(component)} == set(tasks)
    return owners if same else owners_after(owners, tasks)


def _heirs(index: PlanIndex, target: PackingPlan, removed: Iterable[int]) -> dict[int, int]:
    """The tasks that take all key groups of a removed one: they have its index, because the instance moves."""
    places = {(each.component, each.component_index): each.task_id for _, each in target.instances()}
    former = {task_id: (index.tasks[task_id].component, index.tasks[task_id].component_index) for task_id in removed}
    return {task_id: places[place] for task_id, place in former.items() if place in places}


def _merged(one: ContainerPlan, other: ContainerPlan) -> ContainerPlan:
    instances = {each.task_id: each for each in (*one.instances, *other.instances)}
    cpu, ram_bytes, disk_bytes = map(max, one.required.amounts(), other.required.amounts())
    required = Resource(cpu, int(ram_bytes), int(disk_bytes))
    return ContainerPlan(one.container_id, tuple(instances[task_id] for task_id in sorted(instances)), required)


def _last(packing: PackingPlan) -> int:
    return packing.next_task_id() - 1


def _plan(containers: list[ContainerPlan], last_task_id: int) -> PackingPlan:
    return PackingPlan(fingerprint(tuple(containers), last_task_id), tuple(containers), last_task_id)
