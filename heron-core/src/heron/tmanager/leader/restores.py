"""The losses that stream managers report, and the restores that the leader orders for them. Pure.

A restore returns the tasks of one or more regions to the newest complete checkpoint.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import replace

from heron.checkpoints.manifest import CheckpointId
from heron.clock import Clock
from heron.planner.physical_plan import HandledLosses, RegionRestore
from heron.tmanager.leader.checkpoint_run import CheckpointRun
from heron.tmanager.leader.membership import PlanMaker
from heron.tmanager.leader.task_table import TaskTable

__all__ = ["Restores"]

_SETTLE_S = 0.2  # one death is reported by several stream managers; a restore waits until the reports are in


class Restores:
    """Decides which regions are restored, by the losses that stream managers report, and orders the restore."""

    def __init__(self, run: CheckpointRun, plans: PlanMaker, tasks: TaskTable, clock: Clock) -> None:
        self._run = run
        self._plans = plans
        self._tasks = tasks
        self._clock = clock
        self._lossy: dict[int, HandledLosses] = {}
        self._lost_by_task: dict[int, Mapping[int, int]] = {}
        self._lost_at_s: float | None = None
        self.lost_regions: set[str] = set()
        """The regions that have lost data since their last restore."""
        self.last_loss = ""
        """The last loss, for people."""
        self.restored_at_s = 0.0
        """When the last restore was ordered; wall clock, 0 for none."""

    @property
    def wanted(self) -> bool:
        """Whether data was lost, and no restore is ordered yet."""
        return self._lost_at_s is not None

    @property
    def due_s(self) -> float:
        """When the restore is to be ordered, unless a loss is reported before; infinite if none is wanted."""
        return math.inf if self._lost_at_s is None else self._lost_at_s + _SETTLE_S

    def losses_reported(self, container_id: int, incarnation: int, losses: int, by_task: Mapping[int, int]) -> bool:
        """Takes the losses of a stream manager; returns whether there are new ones.

        The first incarnation of each container becomes part of the plan. So a later leader notices another one, also
        when the plan has the address of that one already.
        """
        plan = self._plans.checkpoint_plan()
        known = self._lossy.get(container_id) or next((e for e in plan.losses if e.container_id == container_id), None)
        if known is None:
            known = HandledLosses(container_id, incarnation, 0)
            self._plans.checkpoints = replace(
                plan, losses=tuple(sorted((*plan.losses, known), key=lambda each: each.container_id))
            )
        reported = HandledLosses(container_id, incarnation, losses)
        before, self._lost_by_task[container_id] = self._lost_by_task.get(container_id, {}), by_task
        if reported == known:
            return False
        self._lossy[container_id] = reported
        replaced = incarnation != known.incarnation
        lost = [] if replaced else [task for task, count in by_task.items() if count > before.get(task, 0)]
        self.lost_regions |= self._regions_with(container_id, lost)
        what = "the stream manager was replaced" if replaced else "data was lost"
        self._lost_at_s = self._clock.monotonic_s()
        self.last_loss = f"{what} in container {container_id}"
        return True

    def order(self, regions: Collection[str] = ()) -> None:
        """The next plan restores these regions, and those that have lost data; no regions: all."""
        plan, run = self._plans.checkpoint_plan(), self._run
        self._lost_at_s = None
        number = plan.all_restores() + 1
        source = str(CheckpointId(run.run, plan.complete)) if plan.complete else plan.source
        restored = {*regions, *self.lost_regions} if regions else run.all_regions()
        self.lost_regions = set()
        handled = {each.container_id: each for each in plan.losses} | self._lossy
        containers = self._plans.containers()
        losses = tuple(handled[each] for each in sorted(handled) if each in containers)
        if restored == run.all_regions():
            orders = replace(plan, restores=number, source=source, since=0, losses=losses, regions=())
        else:
            former = (each for each in plan.regions if each.region not in restored)
            newest = (RegionRestore(each, number, source) for each in sorted(restored))
            orders = replace(plan, losses=losses, regions=(*former, *newest))
        self._plans.checkpoints = orders
        self._tasks.restart([name for name, region in run.regions.items() if region in restored])
        self.restored_at_s = self._clock.wall_s()

    def number_of(self, component: str) -> int:
        """The number of the last restore of a component."""
        return self._plans.checkpoint_plan().of_region(self._run.regions[component]).restores

    def number_of_task(self, task_id: int) -> int:
        """The number of the last restore of a task's component."""
        region = self._run.regions.get(self._tasks.place(task_id)[0], "")
        return self._plans.checkpoint_plan().of_region(region).restores

    def source(self) -> str:
        """The checkpoint of the last restore."""
        plan = self._plans.checkpoint_plan()
        return max(plan.regions, key=lambda each: each.restores).source if plan.regions else plan.source

    def _regions_with(self, container_id: int, lost: Collection[int]) -> set[str]:
        """The regions that have lost data: of these tasks, or of all tasks in the container if one is not known."""
        components = {
            each.task_id: each.component for place, each in self._plans.packing.instances() if place == container_id
        }
        named = [components[task_id] for task_id in lost if task_id in components]
        affected = named if named and len(named) == len(lost) else components.values()
        return self._run.regions_of(set(affected)) or self._run.all_regions()
