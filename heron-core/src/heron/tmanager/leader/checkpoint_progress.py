"""The checkpoints and restores of a topology, as its leader orders them. Pure.

See `docs/decisions/021-checkpoints-in-the-plan.md` for the protocol. `step` is called after each event and decides what
the next plan orders. The leader stores what `take_manifest` returns.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from heron.api.api_constants import (
    TOPOLOGY_STATEFUL_CHECKPOINT_INTERVAL_SECONDS,
    TOPOLOGY_STATEFUL_START_FROM,
)
from heron.api.config import setting
from heron.api.definition import TopologyDefinition
from heron.checkpoints.manifest import CheckpointId, CheckpointManifest, TaskSnapshot
from heron.clock import Clock
from heron.errors import HeronError
from heron.ipc.documents.status import CheckpointStatus
from heron.kernel.settings import EngineSettings
from heron.planner.key_group import key_groups_of
from heron.planner.physical_plan import CheckpointPlan, HandledLosses, RegionRestore
from heron.planner.regions import regions_of
from heron.tmanager.leader.membership import PlanMaker
from heron.tmanager.leader.task_table import TaskState, TaskTable

__all__ = [
    "CheckpointEvent",
    "CheckpointProgress",
    "CheckpointReport",
    "CheckpointRun",
    "checkpoint_run",
    "first_checkpoints",
]

_RETRY_S = 1.0  # the pause after a checkpoint that failed, which a command or the end of the topology asks for again
_SETTLE_S = 0.2  # one death is reported by several stream managers; a restore waits until the reports are in
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


@dataclass(frozen=True, slots=True)
class CheckpointRun:
    """The run whose checkpoints are taken, and its settings.

    `interval_s` is the time between two orders; `regions` are those of the components (`heron.planner.regions`).
    """

    topology: str
    run: str
    key_groups: int
    interval_s: float
    timeout_s: float
    regions: Mapping[str, str]


def checkpoint_run(definition: TopologyDefinition, run: str, settings: EngineSettings) -> CheckpointRun:
    """The settings of a run."""
    interval_s = setting(definition.config, TOPOLOGY_STATEFUL_CHECKPOINT_INTERVAL_SECONDS)
    assert isinstance(interval_s, int | float)  # noqa: S101  # the key has a type and a default
    groups = key_groups_of(definition)
    timeout_s, regions = settings.checkpoint_timeout_s, regions_of(definition)
    return CheckpointRun(definition.name, run, groups, float(interval_s), timeout_s, regions)


def first_checkpoints(definition: TopologyDefinition) -> CheckpointPlan:
    """The value of the first plan; the numbers of a run that starts from a checkpoint continue those of the former run.

    Raises:
        CheckpointError: when the id of that checkpoint has a wrong form.
    """
    source = str(definition.config.get(TOPOLOGY_STATEFUL_START_FROM) or "")
    return CheckpointPlan(CheckpointId.parse(source).number if source else 0, source=source)


class CheckpointProgress:
    """The checkpoint under way, the reasons for the next one, and the losses that ask for a restore."""

    def __init__(self, run: CheckpointRun, plans: PlanMaker, tasks: TaskTable, clock: Clock) -> None:
        self._run = run
        self._plans = plans
        self._tasks = tasks
        self._clock = clock
        self._next_s = clock.monotonic_s() + run.interval_s
        self._asked = False
        self._not_before_s = 0.0
        self._saved: dict[int, TaskSnapshot] | None = None
        self._ordered_s = 0.0
        self._ordered_after_end = False
        self._manifest: CheckpointManifest | None = None
        self._storing = False
        self._complete_after_end = False
        self._committed: dict[int, int] = {}
        self._undivided: frozenset[str] = frozenset()
        self._lossy: dict[int, HandledLosses] = {}
        self._lost_by_task: dict[int, Mapping[int, int]] = {}
        self._lost_regions: set[str] = set()
        self._lost_at_s: float | None = None
        self._status = CheckpointStatus()

    def ask(self) -> None:
        """Asks for a checkpoint as soon as one can be taken."""
        self._asked = True

    def join(self) -> int:
        """The number of the checkpoint under way; if none is, asks for one and returns its number."""
        if self._saved is not None:
            return self._plan().number
        self.ask()
        return self._plan().number + 1

    def losses_reported(
        self, container_id: int, incarnation: int, losses: int, by_task: Mapping[int, int] | None = None
    ) -> None:
        """A stream manager reports how often it has lost data; another incarnation has lost all that it held.

        `by_task` divides the losses: by the task whose process died, or 0 for data of any task in the container.

        The first incarnation of each container becomes part of the plan. So a later leader notices another one, also
        when the plan has the address of that one already.
        """
        plan = self._plan()
        known = self._lossy.get(container_id) or next((e for e in plan.losses if e.container_id == container_id), None)
        if known is None:
            known = HandledLosses(container_id, incarnation, 0)
            self._plans.checkpoints = replace(
                plan, losses=tuple(sorted((*plan.losses, known), key=lambda each: each.container_id))
            )
        reported = HandledLosses(container_id, incarnation, losses)
        by_task = by_task or {}
        before, self._lost_by_task[container_id] = self._lost_by_task.get(container_id, {}), by_task
        if reported == known:
            return
        self._lossy[container_id] = reported
        replaced = incarnation != known.incarnation
        lost = [] if replaced else [task for task, count in by_task.items() if count > before.get(task, 0)]
        self._lost_regions |= self._regions_with(container_id, lost)
        what = "the stream manager was replaced" if replaced else "data was lost"
        self._lost_at_s = self._clock.monotonic_s()
        self._status = replace(self._status, last_loss=f"{what} in container {container_id}")
        self._abandon("")

    def reported(self, report: CheckpointReport) -> None:
        """A task reports; reports that do not belong to the checkpoint under way change nothing."""
        plan = self._plan()
        if report.incarnation != self._tasks.incarnation(report.task_id):
            return
        if report.restores != plan.of_region(self._region_of_task(report.task_id)).restores:
            return
        if report.event is CheckpointEvent.COMMITTED:
            self._committed[report.task_id] = max(report.number, self._committed.get(report.task_id, 0))
        elif self._saved is None or report.number != plan.number:
            return
        elif report.event is CheckpointEvent.SAVED and report.snapshot is not None:
            self._saved[report.task_id] = report.snapshot
        elif report.event is CheckpointEvent.FAILED:
            self._abandon(report.error)

    def manifest_stored(self, number: int, error: str = "") -> bool:
        """The manifest of a checkpoint is stored, or is not (`error`); returns whether the plan changes."""
        plan, manifest = self._plan(), self._manifest
        if manifest is None or manifest.number != number:
            return False
        if error:
            self._abandon(error)
            return False
        self._plans.checkpoints = replace(plan, complete=number)
        self._complete_after_end = self._ordered_after_end
        self._undivided = frozenset(each.component for each in manifest.tasks if each.operator is not None)
        slowest = max(manifest.tasks, key=lambda each: each.align_s + each.save_s, default=None)
        self._status = replace(
            self._status,
            completed_at_s=manifest.taken_at_s,
            duration_s=manifest.duration_s,
            size_bytes=manifest.size_bytes(),
            align_s=max((each.align_s for each in manifest.tasks), default=0.0),
            slowest_task=slowest.task_id if slowest else 0,
        )
        self._end()
        return True

    def step(self, *, may_order: bool) -> bool:
        """Decides what is due; returns whether the plan changes. `may_order`: no container is missing."""
        now_s = self._clock.monotonic_s()
        if self._lost_at_s is not None:
            if now_s - self._lost_at_s < _SETTLE_S:
                return False
            self.restore(self._lost_regions)
            return True
        if self._saved is not None:
            missing = self._missing()
            if not missing and not self._storing:
                self._complete_manifest()
            elif missing and now_s - self._ordered_s >= self._run.timeout_s:
                self._abandon(
                    f"{_tasks(missing)} did not save within {self._run.timeout_s:g} s (heron.checkpoint.timeout.s)"
                )
            return False
        due = self._asked or now_s >= self._next_s or self._final_is_due()
        if not due or not may_order or now_s < self._not_before_s or self._unready():
            return False
        self._order(now_s)
        return True

    def take_manifest(self) -> CheckpointManifest | None:
        """The manifest to store now, once."""
        if self._manifest is None or self._storing:
            return None
        self._storing = True
        return self._manifest

    def restore(self, regions: Collection[str] = ()) -> None:
        """Orders that every task of these regions returns to the newest complete checkpoint; "()" means all tasks.

        The regions of reported losses are among them.
        """
        plan, run = self._plan(), self._run
        self._abandon("")
        self._lost_at_s = None
        number = plan.all_restores() + 1
        source = str(CheckpointId(run.run, plan.complete)) if plan.complete else plan.source
        restored = {*regions, *self._lost_regions} if regions else set(run.regions.values())
        self._lost_regions = set()
        handled = {each.container_id: each for each in plan.losses} | self._lossy
        containers = self._plans.containers()
        losses = tuple(handled[each] for each in sorted(handled) if each in containers)
        if restored == set(run.regions.values()):
            orders = replace(plan, restores=number, source=source, since=0, losses=losses, regions=())
        else:
            former = (each for each in plan.regions if each.region not in restored)
            newest = (RegionRestore(each, number, source) for each in sorted(restored))
            orders = replace(plan, losses=losses, regions=(*former, *newest))
        self._plans.checkpoints = orders
        self._tasks.restart([name for name, region in run.regions.items() if region in restored])
        self._complete_after_end = False
        self._next_s = self._clock.monotonic_s() + self._run.interval_s
        self._status = replace(self._status, restored_at_s=self._clock.wall_s())

    def is_committed(self, number: int) -> bool:
        """Whether a checkpoint with this number or a later one is complete, and every task has committed it."""
        complete = self._plan().complete
        return complete >= number and not self._uncommitted(complete)

    def is_final(self) -> bool:
        """Whether a checkpoint after the end of all tasks is complete and committed."""
        return self._complete_after_end and self.is_committed(self._plan().complete)

    def undivided(self) -> frozenset[str]:
        """The components that had operator state at the newest complete checkpoint of this leader."""
        return self._undivided

    @property
    def failures(self) -> tuple[int, str]:
        """How many checkpoints have failed, and why the last one did."""
        return self._status.failed, self._status.last_error

    def status(self) -> CheckpointStatus:
        """The checkpoints for people."""
        plan = self._plan()
        return replace(
            self._status,
            number=plan.number,
            complete=plan.complete,
            restores=plan.all_restores(),
            source=max(plan.regions, key=lambda each: each.restores).source if plan.regions else plan.source,
            waits_for=self._waits_for(),
        )

    def _plan(self) -> CheckpointPlan:
        plan = self._plans.checkpoints
        if plan is None:
            msg = f"topology {self._run.topology!r} has no checkpoints"
            raise HeronError(msg)
        return plan

    def restores_of(self, component: str) -> int:
        """The number of the last restore of a component."""
        return self._plan().of_region(self._run.regions[component]).restores

    def regions_of(self, components: Collection[str]) -> set[str]:
        """The regions of these components."""
        return {self._run.regions[each] for each in components}

    def _region_of_task(self, task_id: int) -> str:
        return self._run.regions.get(self._tasks.place(task_id)[0], "")

    def _regions_with(self, container_id: int, lost: Collection[int]) -> set[str]:
        """The regions that have lost data: of these tasks, or of all tasks in the container if one is not known."""
        components = {
            each.task_id: each.component for place, each in self._plans.packing.instances() if place == container_id
        }
        named = [components[task_id] for task_id in lost if task_id in components]
        affected = named if named and len(named) == len(lost) else components.values()
        return {self._run.regions[each] for each in affected} or set(self._run.regions.values())

    def _order(self, now_s: float) -> None:
        plan = self._plan()
        self._plans.checkpoints = replace(plan, number=plan.number + 1)
        self._saved = {}
        self._ordered_s = now_s
        self._ordered_after_end = self._tasks.all_ended()
        self._asked = False
        self._next_s = now_s + self._run.interval_s

    def _abandon(self, error: str) -> None:
        if error:
            self._not_before_s = self._clock.monotonic_s() + _RETRY_S
            self._status = replace(self._status, failed=self._status.failed + 1, last_error=error)
        self._asked = self._asked or (self._saved is not None and not error)
        self._end()

    def _end(self) -> None:
        self._saved = None
        self._manifest = None
        self._storing = False

    def _complete_manifest(self) -> None:
        assert self._saved is not None  # noqa: S101  # only for a checkpoint under way
        self._manifest = CheckpointManifest(
            topology=self._run.topology,
            run=self._run.run,
            number=self._plan().number,
            taken_at_s=self._clock.wall_s(),
            duration_s=self._clock.monotonic_s() - self._ordered_s,
            key_groups=self._run.key_groups,
            tasks=tuple(self._saved[task_id] for task_id in sorted(self._plans.routed_tasks())),
        )

    def _missing(self) -> list[int]:
        saved = self._saved or {}
        return sorted(self._plans.routed_tasks() - saved.keys())

    def _unready(self) -> list[int]:
        """The tasks that do not work since the last restore."""
        return [task_id for task_id in sorted(self._plans.routed_tasks()) if self._tasks.state(task_id) not in _WORKS]

    def _uncommitted(self, number: int) -> list[int]:
        return [task for task in sorted(self._plans.routed_tasks()) if self._committed.get(task, 0) < number]

    def _final_is_due(self) -> bool:
        return self._tasks.all_ended() and not self._complete_after_end

    def _waits_for(self) -> str:
        if self._lost_at_s is not None:
            return "a restore"
        if self._saved is None:
            return _tasks(self._unready())
        return _tasks(self._missing()) or "its manifest"


def _tasks(task_ids: list[int]) -> str:
    return f"task{'s' if len(task_ids) > 1 else ''} {', '.join(map(str, task_ids))}" if task_ids else ""
