"""What every packing plan must hold, whoever made it: the rules that routing and key groups stand on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from heron.errors import PackingError, known, nearest
from heron.planner.packing_plan import PackingPlan

__all__ = ["check_packing"]


def check_packing(plan: PackingPlan, parallelism: Mapping[str, int]) -> None:
    """Returns when the plan places every instance once: ids unique, indexes 0 … n-1 per component, no container empty.

    `parallelism` is the number of instances asked for, for every component.

    Raises:
        PackingError: when it does not; names the container, component or task.
    """
    _check_containers(plan)
    indexes: dict[str, list[int]] = {component: [] for component in parallelism}
    placed: dict[int, int] = {}
    for container_id, instance in plan.instances():
        where = f"container {container_id}, task {instance.task_id}"
        if instance.component not in indexes:
            near = nearest(instance.component, indexes)
            _refuse(plan, f"{where}: unknown component {instance.component!r}{near}; known: {known(indexes)}")
        if instance.task_id < 1:
            _refuse(plan, f"{where}: task ids begin at 1")
        if instance.task_id in placed:
            _refuse(plan, f"{where}: the task is placed in container {placed[instance.task_id]} too")
        placed[instance.task_id] = container_id
        indexes[instance.component].append(instance.component_index)
    for component, found in indexes.items():
        wanted = parallelism[component]
        if sorted(found) != list(range(wanted)):
            _refuse(
                plan,
                f"component {component!r}: has the indexes {_shortened(sorted(found))}, "
                f"not each of 0 to {wanted - 1} once",
            )


def _check_containers(plan: PackingPlan) -> None:
    seen: set[int] = set()
    for container in plan.containers:
        if container.container_id < 1:
            _refuse(plan, f"container {container.container_id}: the ids of planned containers begin at 1")
        if container.container_id in seen:
            _refuse(plan, f"container {container.container_id}: stands in the plan twice")
        if not container.instances:
            _refuse(plan, f"container {container.container_id}: is empty")
        seen.add(container.container_id)


def _shortened(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers[:8])) + (", ..." if len(numbers) > 8 else "") or "none"


def _refuse(plan: PackingPlan, message: str) -> NoReturn:
    text = f"packing plan {plan.id!r}: {message}"
    raise PackingError(text)
