"""The change of the code of a running topology: the updates that carry it, and when it is over or returns. Pure.

An update replaces tasks by tasks with the new code. Then the leader waits until all of these run: with checkpoints they
start once more, with the state of the restore. While only a share of the tasks is replaced, a command decides. A change
whose tasks fail, and a share for which nobody decides in time, returns: an update replaces its tasks by tasks with the
former package. See `docs/decisions/111-new-code-by-new-tasks.md`.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Final

from heron.api.definition import ComponentDefinition, TopologyDefinition
from heron.clock import Clock
from heron.errors import HeronError
from heron.ipc.documents.status import CodeStatus
from heron.planner.code_change import CodeChange, replaced
from heron.planner.packing_plan import PackingPlan
from heron.planner.physical_plan import PhysicalPlan, at_parallelism_of
from heron.planner.verify import verify
from heron.tmanager.leader.membership import PlanMaker
from heron.tmanager.leader.task_table import TaskState, TaskTable
from heron.tmanager.leader.update_progress import MOST_DEATHS, NO_OWNERS, UpdateProgress

__all__ = ["CodeProgress"]

_DECIDE_S: Final = 30.0  # after the time of the canaries: the command compares them, and asks a busy leader
_AGAIN_S: Final = 1.0  # a return that was withdrawn begins again

_log = logging.getLogger(__name__)


class CodeProgress:
    """The change of the code of one leader: `begin`, then `step` after each event. The plan maker holds its value."""

    def __init__(
        self, plans: PlanMaker, tasks: TaskTable, update: UpdateProgress, definition: TopologyDefinition, clock: Clock
    ) -> None:
        self._plans = plans
        self._tasks = tasks
        self._update = update
        self._definition = definition
        self._clock = clock
        self._updated_s: float | None = None
        self._canary_s: float | None = None
        self._again_s = 0.0
        self._last: CodeStatus | None = None

    def begin(self, plan: PhysicalPlan, target: PackingPlan, base: str, change: CodeChange) -> bool:
        """Begins the update to `target`, whose new tasks run the code of `change`; False if it has begun before.

        The rest of the tasks may follow those that run the same package.

        Raises:
            HeronError: when another change or update is under way, the new code defines other components or streams,
                or the update is not possible.
        """
        before = self._plans.code
        if before is not None and (before.package != change.package or before.returns):
            raise HeronError(self.refusal())
        if before is not None and target.id == self._plans.packing.id:  # no other task follows
            self._plans.code = replace(before, canary_s=change.canary_s)
            return True
        if change.package == self._plans.package:
            return False  # the answer to the first request was lost
        if _shape(change.topology) != _shape(self._plans.definition):
            msg = f"package {change.package}: its components, streams or groupings are not those of the topology"
            raise HeronError(msg)
        verify(at_parallelism_of(target, change.topology))
        tasks = tuple(sorted(each.task_id for _, each in target.instances() if each.package == change.package))
        # the topology of canaries has the values that were configured since the command read its plan
        topology = change.topology if before is None else before.topology
        self._plans.code = replace(change, topology=topology, tasks=tasks, returns="")
        try:
            begun = self._update.begin(plan, self._definition, target, base, NO_OWNERS)
        except HeronError:
            self._plans.code = before
            raise
        self._updated_s = self._canary_s = None
        return begun

    def refusal(self) -> str:
        """Why another update cannot begin; "" while no change of the code is under way."""
        status = self.status()
        if self._plans.code is None or status is None:
            return ""
        return (
            f"the code of {self._definition.name!r} changes to {status.package}, in phase {status.phase}; try again "
            "when that is complete, or withdraw it"
        )

    def withdraw(self, reason: str) -> bool:
        """Lets the tasks with new code return, if no update is under way; returns whether there is such a change."""
        code = self._plans.code
        if code is None or self._plans.update is not None:
            return False
        self._plans.code = replace(code, returns=code.returns or reason)
        return True

    def step(self, plan: PhysicalPlan | None) -> bool:
        """Goes on if the last update is over; returns whether the plan changes."""
        code = self._plans.code
        if plan is None or code is None or self._plans.update is not None:
            return False
        run = [task for task in code.tasks if self._tasks.state(task) is not None]
        changed = [each.task_id for _, each in self._plans.packing.instances() if each.component in code.components]
        complete = sorted(run) == sorted(changed)
        if not run:
            return self._end("returned", code.returns or self._withdrawal())
        if ended := [task for task in changed if self._tasks.state(task) is TaskState.ENDED]:
            reason = f"component {self._tasks.place(ended[0])[0]!r} has ended at task {ended[0]}"
            return self._end("complete" if complete else "returned", reason)
        if not code.returns:
            reason = self._withdrawal() if len(run) < len(code.tasks) else self._fault(code, run)
            if not reason:
                is_over = complete and self._canary_s is not None and not code.canary_s
                return is_over and self._end("complete", "")
            code = self._plans.code = replace(code, returns=reason)
        return self._return(plan, run)

    def spares(self, task_id: int) -> bool:
        """Whether a failure of this task withdraws an update or returns new code, and does not end the topology."""
        code = self._plans.code
        return self._update.prepares(task_id) or (code is not None and task_id in code.tasks)

    def holds_checkpoints(self) -> bool:
        """Whether no checkpoint may be taken: a return goes back to that of the update, which has no new code.

        While the rest of the tasks follows canaries, only the checkpoint of that update is taken.
        """
        code, update = self._plans.code, self._plans.update
        if code is None:
            return False
        if update is None or code.returns:
            return True
        return not set(code.tasks) <= set(update.added) and not self._update.checkpoint

    def status(self) -> CodeStatus | None:
        """The change under way, else the last one of this leader."""
        code = self._plans.code
        if code is None:
            return self._last
        canary = self._plans.update is None and self._canary_s is not None
        phase = "return" if code.returns else "canary" if canary else "change"
        return CodeStatus(code.package, phase, code.components, code.tasks, code.returns)

    def _fault(self, code: CodeChange, run: list[int]) -> str:
        """Why the tasks with new code must return; "" if they need not."""
        now_s = self._clock.monotonic_s()
        self._updated_s = self._updated_s if self._updated_s is not None else now_s
        if broken := [task for task in run if self._tasks.is_broken(task, MOST_DEATHS)]:
            component, container_id = self._tasks.place(broken[0])
            error = self._tasks.last_error(broken[0])
            return f"task {broken[0]} of {component!r} in container {container_id} does not run: {error}"
        starting = [task for task in run if self._tasks.state(task) is not TaskState.RUNNING]
        if self._canary_s is not None:
            limit_s = code.canary_s + _DECIDE_S
            return f"nobody has decided within {limit_s:g} s" if now_s >= self._canary_s + limit_s else ""
        if not starting:
            self._canary_s = now_s
        elif now_s >= self._updated_s + self._update.limit_s:
            return f"task {starting[0]} does not run after {self._update.limit_s:g} s (heron.update.prepare.s)"
        return ""

    def _withdrawal(self) -> str:
        status = self._update.status()
        return status.waits_for if status is not None else "another topology manager took over"

    def _return(self, plan: PhysicalPlan, run: list[int]) -> bool:
        now_s = self._clock.monotonic_s()
        if now_s < self._again_s:
            return False
        self._again_s = now_s + _AGAIN_S
        packing = self._plans.packing
        try:
            target = replaced(packing, run, self._plans.package)
            return self._update.begin(plan, self._definition, target, packing.id, NO_OWNERS)
        except HeronError as error:
            _log.warning("the former code cannot return yet: %s", error)
            return False

    def _end(self, phase: str, reason: str) -> bool:
        code = self._plans.code
        assert code is not None  # noqa: S101  # only for a change under way
        self._last = CodeStatus(code.package, phase, code.components, code.tasks, reason)
        self._plans.end_code_change(completed=phase == "complete")
        return True


def _shape(topology: TopologyDefinition) -> list[ComponentDefinition]:
    return [replace(each, entry="", parallelism=1, config={}) for each in topology.components]
