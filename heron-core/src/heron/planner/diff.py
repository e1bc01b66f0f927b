"""What changes from one plan to the next: the reason for every start, stop and reconnection of an update."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from heron.planner.packing_plan import PackingPlan
from heron.planner.physical_plan import PhysicalPlan, TaskPlan

__all__ = ["PackingDiff", "PlanDiff", "TaskMove", "diff_packing_plans", "diff_physical_plans"]


@dataclass(frozen=True, slots=True)
class TaskMove:
    """A task that goes from one container to another."""

    task_id: int
    component: str
    from_container: int
    to_container: int


@dataclass(frozen=True, slots=True)
class PackingDiff:
    """What a packing plan adds, removes and moves; all in ascending order of id."""

    added: tuple[TaskPlan, ...]
    removed: tuple[TaskPlan, ...]
    moved: tuple[TaskMove, ...]
    containers_added: tuple[int, ...]
    containers_removed: tuple[int, ...]

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.moved or self.containers_added or self.containers_removed)


@dataclass(frozen=True, slots=True)
class PlanDiff:
    """What a physical plan changes: its tasks and containers, and the stream managers to connect to anew.

    `stmgrs_added` have no predecessor, `stmgrs_removed` no successor; `stmgrs_restarted` have another incarnation or
    another place. All are container ids in ascending order.
    """

    packing: PackingDiff
    stmgrs_added: tuple[int, ...]
    stmgrs_removed: tuple[int, ...]
    stmgrs_restarted: tuple[int, ...]
    state_changed: bool

    def __bool__(self) -> bool:
        return bool(
            self.packing or self.stmgrs_added or self.stmgrs_removed or self.stmgrs_restarted or self.state_changed
        )


def diff_packing_plans(before: PackingPlan, after: PackingPlan) -> PackingDiff:
    """What `after` changes; a task that has changed its component counts as removed and added."""
    return _diff(
        _tasks(before),
        _tasks(after),
        {container.container_id for container in before.containers},
        {container.container_id for container in after.containers},
    )


def diff_physical_plans(before: PhysicalPlan, after: PhysicalPlan) -> PlanDiff:
    """What `after` changes; containers are those that have tasks."""
    tasks, new_tasks = ({task.task_id: task for task in plan.tasks} for plan in (before, after))
    stmgrs, new_stmgrs = ({stmgr.container_id: stmgr for stmgr in plan.stmgrs} for plan in (before, after))
    return PlanDiff(
        packing=_diff(
            tasks,
            new_tasks,
            {task.container_id for task in tasks.values()},
            {task.container_id for task in new_tasks.values()},
        ),
        stmgrs_added=tuple(sorted(new_stmgrs.keys() - stmgrs.keys())),
        stmgrs_removed=tuple(sorted(stmgrs.keys() - new_stmgrs.keys())),
        stmgrs_restarted=tuple(
            sorted(each for each in stmgrs.keys() & new_stmgrs.keys() if stmgrs[each] != new_stmgrs[each])
        ),
        state_changed=before.state is not after.state,
    )


def _tasks(plan: PackingPlan) -> dict[int, TaskPlan]:
    return {
        instance.task_id: TaskPlan(instance.task_id, instance.component, instance.component_index, container_id)
        for container_id, instance in plan.instances()
    }


def _diff(
    before: Mapping[int, TaskPlan], after: Mapping[int, TaskPlan], containers: set[int], new_containers: set[int]
) -> PackingDiff:
    kept = {
        task_id
        for task_id in before.keys() & after.keys()
        if before[task_id].component == after[task_id].component
        and before[task_id].component_index == after[task_id].component_index
    }
    return PackingDiff(
        added=tuple(after[task_id] for task_id in sorted(after.keys() - kept)),
        removed=tuple(before[task_id] for task_id in sorted(before.keys() - kept)),
        moved=tuple(
            TaskMove(task_id, after[task_id].component, before[task_id].container_id, after[task_id].container_id)
            for task_id in sorted(kept)
            if before[task_id].container_id != after[task_id].container_id
        ),
        containers_added=tuple(sorted(new_containers - containers)),
        containers_removed=tuple(sorted(containers - new_containers)),
    )
