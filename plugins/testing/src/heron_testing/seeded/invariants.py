"""What must hold while a simulation runs: bounded memory, routes that agree, checkpoints that are stored.

The roles are looked at between two events, by what they also show to their own metrics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from heron.kernel.settings import EngineSettings
from heron.planner.physical_plan import PhysicalPlan, PlanIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from heron.instance.task import Task
    from heron.stmgr.stream_manager import StreamManager
    from heron_testing.seeded.stores import Objects
    from heron_testing.seeded.world import World

__all__ = ["RoleChecks"]

_WITHIN_S = 0.05
_AGREE_S = 20.0  # after the last fault and the last change of the plan: a link that is cut breaks within 15 s
_MOST_PROBLEMS = 5
_PRODUCERS_BEFORE_PLAN = 8  # a stream manager that restarts gets data before its plan


class RoleChecks:
    """Looks at the living stream managers and tasks of one run; `problems` has what it found."""

    def __init__(self, world: World, settings: Mapping[str, object], objects: Objects) -> None:
        self._world = world
        self._objects = objects
        self._complete = 0
        self._limits = EngineSettings.from_keys(dict(settings))
        self.stmgrs: dict[str, StreamManager] = {}
        """The stream managers by the name of their process; those of ended processes are taken out."""
        self.tasks: dict[str, Task] = {}
        """The tasks, likewise."""
        self.on_task_end: Callable[[Task], None] = lambda _task: None
        """Called when the process of a task has ended."""
        self.problems: list[str] = []
        self.sessions = 1
        """How many sessions a link may have had: the bytes of an ended session may still wait."""
        self.quiet_s = 0.0
        """When the last fault is over."""
        self._written: PhysicalPlan | None = None
        self._written_s = 0.0
        self._seen: dict[str, PhysicalPlan] = {}
        self._producers: dict[str, dict[int, int]] = {}
        self._routes: dict[tuple[int, int], tuple[object, ...]] = {}

    def begin(self) -> None:
        """Looks from now on at each process that runs, soon after it has begun to run."""
        self._world.on_run = lambda: self._world.after(_WITHIN_S, self._look)

    def plan_written(self, plan: PhysicalPlan) -> None:
        """The state manager has a new plan."""
        self._written, self._written_s = plan, self._world.now_s
        complete = plan.checkpoints.complete if plan.checkpoints is not None else 0
        if complete > self._complete and (missing := self._objects.missing(complete)):
            self._note(f"{_named(plan)} has the complete checkpoint {complete}, and the store does not have {missing}")
        self._complete = complete

    def ended(self, process: str) -> None:
        """A process has ended."""
        if (task := self.tasks.pop(process, None)) is not None:
            self.on_task_end(task)
        for each in (self.stmgrs, self._seen):
            each.pop(process, None)

    def _look(self) -> None:
        """Looks at the processes that have run since the last time: in the others nothing has changed."""
        for process in self._world.ran:
            if (manager := self.stmgrs.get(process.name)) is not None:
                self._check_stmgr(process.name, manager)
            elif (task := self.tasks.get(process.name)) is not None:
                self._check_task(process.name, task)
        self._world.ran.clear()
        if self._world.now_s > max(self.quiet_s, self._written_s) + _AGREE_S:
            self._check_agreement()

    def _check_stmgr(self, name: str, manager: StreamManager) -> None:
        plan = manager.plan
        if plan is not None and plan is not self._seen.get(name):
            self._check_plan(name, plan)
        for task_id, outlet in manager.outlets.items():
            if outlet.queue:
                self._bound(f"{name} keeps for task {task_id}", outlet.queued_bytes, self._outlet_limit(name, task_id))

    def _check_task(self, name: str, task: Task) -> None:
        self._check_code(name, task)
        gateway, limits = task.gateway, self._limits
        frame = limits.batch_bytes + limits.link_window_bytes
        self._bound(f"{name} has received", gateway.data_in.queued_bytes(), self.sessions * frame)
        # A round may flush a stream twice, and a batch exceeds its size by a row, which is no larger here.
        batches = 4 * max(1, len(task.definition.outputs)) * limits.batch_bytes
        self._bound(f"{name} keeps to send", gateway.data_out.queued_bytes, limits.out_queue_bytes + batches)

    def _check_code(self, name: str, task: Task) -> None:
        """A task runs the code that its plan has for it."""
        plan, component = task.index.plan, task.gateway.inspected.component
        if component is None or (plan.code is None and not plan.package):
            return
        code = getattr(component, "_author_class", type(component))
        wanted = plan.topology_of(task.spec.task_id).component(task.spec.component).entry
        if f"{code.__module__}:{code.__qualname__}" != wanted:
            self._note(f"{name} runs {code.__qualname__}, and {_named(plan)} has {wanted}")

    def _outlet_limit(self, name: str, task_id: int) -> int:
        """The hard limit and a window of each producer: see `heron.stmgr.outlet`."""
        producers = self._producers.get(name, {}).get(task_id, _PRODUCERS_BEFORE_PLAN)
        window = self._limits.link_window_bytes + self._limits.batch_bytes
        return self._limits.hard_limit_bytes + self.sessions * max(1, producers) * window

    def _check_plan(self, name: str, plan: PhysicalPlan) -> None:
        before, written = self._seen.get(name), self._written
        if before is not None and plan.precedes(before):
            self._note(f"{name} goes back from {_named(before)} to {_named(plan)}")
        if written is not None and written.precedes(plan):
            self._note(f"{name} routes by {_named(plan)}, and the state manager has {_named(written)}")
        index, self._seen[name] = PlanIndex(plan), plan
        self._producers[name] = {each.task_id: len(index.upstream_tasks(each.component)) for each in plan.tasks}
        routes = plan.tasks, plan.key_owners, plan.update
        if self._routes.setdefault((plan.epoch, plan.version), routes) != routes:
            self._note(f"{name} has other routes in {_named(plan)} than another stream manager")

    def _check_agreement(self) -> None:
        written = self._written
        for name, manager in self.stmgrs.items():
            plan = manager.plan
            if plan is not None and written is not None and plan.version != written.version:
                self._note(f"{name} still routes by {_named(plan)}, and the leader has {_named(written)}")

    def _bound(self, what: str, size_bytes: int, limit_bytes: int) -> None:
        if size_bytes > limit_bytes:
            self._note(f"{what} {size_bytes} bytes, the limit is {limit_bytes} bytes")

    def _note(self, what: str) -> None:
        if len(self.problems) < _MOST_PROBLEMS:
            self.problems.append(f"at {self._world.now_s:.3f} s: {what}")


def _named(plan: PhysicalPlan) -> str:
    return f"plan {plan.version} of epoch {plan.epoch}"
