"""The checkpoints of a topology, as its leader orders them. Pure.

See `docs/decisions/021-checkpoints-in-the-plan.md` for the protocol. `step` is called after each event and decides what
the next plan orders. The leader stores what `take_manifest` returns.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import msgspec

from heron.checkpoints.manifest import CheckpointManifest, TaskSnapshot
from heron.clock import Clock
from heron.ipc.documents.status import CheckpointStatus
from heron.tmanager.leader.checkpoint_run import CheckpointRun
from heron.tmanager.leader.membership import PlanMaker
from heron.tmanager.leader.pending_checkpoint import PendingCheckpoint
from heron.tmanager.leader.restores import Restores
from heron.tmanager.leader.task_table import TaskState, TaskTable

__all__ = ["CheckpointEvent", "CheckpointProgress", "CheckpointReport"]

_RETRY_S = 1.0  # the pause after a checkpoint that failed, which a command or the end of the topology asks for again
_WORKS = (TaskState.RUNNING, TaskState.ENDED)


class CheckpointEvent(enum.Enum):
    """What a task reports about a checkpoint."""

    SAVED = enum.auto()
    FAILED = enum.auto()
    COMMITTED = enum.auto()


@dataclass(frozen=True, slots=True)
class CheckpointReport:
    """The report of a task; `snapshot` comes with `SAVED`, `error` with `FAILED`."""

    task_id: int
    incarnation: int
    restores: int
    number: int
    event: CheckpointEvent
    snapshot: TaskSnapshot | None = None
    error: str = ""


class CheckpointProgress:
    """The checkpoint under way, the reasons for the next one, and what of the complete ones is committed."""

    def __init__(self, run: CheckpointRun, plans: PlanMaker, tasks: TaskTable, clock: Clock) -> None:
        self.run = run
        self.restores = Restores(run, plans, tasks, clock)
        """The losses, and the restores so far; `CheckpointProgress.restore` orders one."""
        self._plans = plans
        self._tasks = tasks
        self._clock = clock
        self._next_s = clock.monotonic_s() + run.interval_s
        self._asked = False
        self._held_up = False  # one is due, and cannot be ordered yet
        self._not_before_s = 0.0
        self._pending: PendingCheckpoint | None = None
        self._complete_after_end = False
        self._committed: dict[int, int] = {}
        self._status = CheckpointStatus()

    def ask(self) -> None:
        """Asks for a checkpoint as soon as one can be taken."""
        self._asked = True

    def join(self) -> int:
        """The number of the checkpoint under way; if none is, asks for one and returns its number."""
        if self._pending is not None:
            return self._pending.number
        self.ask()
        return self._plans.checkpoint_plan().number + 1

    def losses_reported(
        self,
        container_id: int,
        incarnation: int,
        losses: int,
        by_task: Mapping[int, int] | None = None,
        *,
        again: bool = False,
    ) -> None:
        """A stream manager reports how often it has lost data; another incarnation has lost all that it held.

        `by_task` divides the losses: by the task whose process died, or 0 for data of any task in the container. If it
        has connected `again`, its tasks may have reported meanwhile, and do not report again. So the checkpoint under
        way is taken again, and the topology ends with another one if a commit is missing.
        """
        if self.restores.losses_reported(container_id, incarnation, losses, by_task or {}):
            self.abandon("")
        elif again:
            if self._pending is not None and not self._pending.is_storing:
                self.abandon("")
            self._complete_after_end = self.is_final()

    def reported(self, report: CheckpointReport) -> None:
        """A task reports; reports that do not belong to the checkpoint under way change nothing."""
        pending = self._pending
        if report.incarnation != self._tasks.incarnation(report.task_id):
            return
        if report.restores != self.restores.number_of_task(report.task_id):
            return
        if report.event is CheckpointEvent.COMMITTED:
            self._committed[report.task_id] = max(report.number, self._committed.get(report.task_id, 0))
        elif pending is None or report.number != pending.number:
            return
        elif report.event is CheckpointEvent.SAVED and report.snapshot is not None:
            pending.saved[report.task_id] = report.snapshot
        elif report.event is CheckpointEvent.FAILED:
            self.abandon(report.error)

    def manifest_stored(self, number: int, error: str = "") -> bool:
        """The manifest of a checkpoint is stored, or is not (`error`); returns whether the plan changes."""
        pending = self._pending
        manifest = pending.manifest if pending is not None else None
        if pending is None or manifest is None or manifest.number != number:
            return False
        if error:
            self.abandon(error)
            return False
        undivided = tuple(sorted({each.component for each in manifest.tasks if each.operator is not None}))
        self._plans.checkpoints = replace(self._plans.checkpoint_plan(), complete=number, undivided=undivided)
        self._complete_after_end = pending.after_end
        slowest = max(manifest.tasks, key=lambda each: each.align_s + each.save_s, default=None)
        self._status = msgspec.structs.replace(
            self._status,
            completed_at_s=manifest.taken_at_s,
            duration_s=manifest.duration_s,
            size_bytes=manifest.size_bytes(),
            align_s=max((each.align_s for each in manifest.tasks), default=0.0),
            slowest_task=slowest.task_id if slowest else 0,
        )
        self._pending = None
        return True

    def step(self, *, may_order: bool) -> bool:
        """Decides what is due; returns whether the plan changes. `may_order`: nothing else holds checkpoints up."""
        now_s = self._clock.monotonic_s()
        if self.restores.wanted:
            if now_s < self.restores.due_s:
                return False
            self.restore(self.restores.lost_regions)
            return True
        if self._pending is not None:
            self._continue(self._pending, now_s)
            return False
        due = self._asked or now_s >= self._next_s or (self._tasks.all_ended() and not self._complete_after_end)
        self._held_up = due and (not may_order or now_s < self._not_before_s or bool(self._unready()))
        if not due or self._held_up:
            return False
        self._order(now_s)
        return True

    def due_s(self) -> float:
        """When `step` must be called at the latest, if no event comes before (monotonic seconds)."""
        if self.restores.wanted:
            return self.restores.due_s
        if self._pending is not None:
            return self._pending.ordered_s + self.run.timeout_s
        return self._not_before_s if self._asked or self._held_up else max(self._next_s, self._not_before_s)

    def take_manifest(self) -> CheckpointManifest | None:
        """The manifest to store now, once."""
        return self._pending.take_manifest() if self._pending is not None else None

    def restore(self, regions: Collection[str] = ()) -> None:
        """Orders that every task of these regions returns to the newest complete checkpoint; "()" means all tasks.

        The regions of reported losses are among them.
        """
        self.abandon("")
        self.restores.order(regions)
        self._complete_after_end = False
        self._next_s = self._clock.monotonic_s() + self.run.interval_s

    def is_committed(self, number: int) -> bool:
        """Whether a checkpoint with this number or a later one is complete, and every task has committed it."""
        complete = self._plans.checkpoint_plan().complete
        tasks = self._plans.routed_tasks()
        return complete >= number and all(self._committed.get(task, 0) >= complete for task in tasks)

    def is_final(self) -> bool:
        """Whether a checkpoint after the end of all tasks is complete and committed."""
        return self._complete_after_end and self.is_committed(self._plans.checkpoint_plan().complete)

    def undivided(self) -> frozenset[str]:
        """The components that had operator state at the newest complete checkpoint."""
        return frozenset(self._plans.checkpoint_plan().undivided)

    @property
    def failures(self) -> tuple[int, int, str]:
        """How many checkpoints have failed, the number of the last one, and its reason."""
        return self._status.failed, self._status.failed_number, self._status.last_error

    def status(self) -> CheckpointStatus:
        """The checkpoints for people."""
        plan = self._plans.checkpoint_plan()
        return msgspec.structs.replace(
            self._status,
            number=plan.number,
            complete=plan.complete,
            restores=plan.all_restores(),
            source=self.restores.source(),
            restored_at_s=self.restores.restored_at_s,
            last_loss=self.restores.last_loss,
            waits_for=self._waits_for(),
        )

    def _continue(self, pending: PendingCheckpoint, now_s: float) -> None:
        """Makes the manifest when all tasks have saved; abandons the checkpoint when it takes too long."""
        tasks = self._plans.routed_tasks()
        missing = pending.missing(tasks)
        if not missing and not pending.is_storing:
            pending.make_manifest(self.run, tasks, self._clock)
        elif missing and now_s - pending.ordered_s >= self.run.timeout_s:
            self.abandon(f"{_tasks(missing)} did not save within {self.run.timeout_s:g} s (heron.checkpoint.timeout.s)")

    def _order(self, now_s: float) -> None:
        plan = self._plans.checkpoint_plan()
        self._plans.checkpoints = replace(plan, number=plan.number + 1)
        self._pending = PendingCheckpoint(plan.number + 1, now_s, after_end=self._tasks.all_ended())
        self._asked = False
        self._next_s = now_s + self.run.interval_s

    def abandon(self, error: str = "") -> None:
        """Gives up the checkpoint under way. Another one is taken as soon as possible, or some time after an error."""
        if error and self._pending is not None:
            number = self._pending.number
            self._not_before_s = self._clock.monotonic_s() + _RETRY_S
            self._status = msgspec.structs.replace(
                self._status, failed=self._status.failed + 1, last_error=error, failed_number=number
            )
        self._asked = self._asked or (self._pending is not None and not error)
        self._pending = None

    def _unready(self) -> list[int]:
        """The tasks that do not work since the last restore."""
        return [task_id for task_id in sorted(self._plans.routed_tasks()) if self._tasks.state(task_id) not in _WORKS]

    def _waits_for(self) -> str:
        if self.restores.wanted:
            return "a restore"
        if self._pending is None:
            return _tasks(self._unready())
        return _tasks(self._pending.missing(self._plans.routed_tasks())) or "its manifest"


def _tasks(task_ids: list[int]) -> str:
    return f"task{'s' if len(task_ids) > 1 else ''} {', '.join(map(str, task_ids))}" if task_ids else ""
