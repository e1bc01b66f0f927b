"""The decisions of the leading topology manager. Pure: events in, instructions out.

The plan follows from the registrations (`membership`). The end of the topology follows from its tasks: it has finished
when all tasks have ended. With `topology.on.failure: stop` it has failed when a task has failed, or when an executor
does not restart a process any more.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from heron.clock import Clock
from heron.errors import HeronError
from heron.ipc.documents.status import CodeStatus
from heron.kernel.settings import EngineSettings
from heron.planner.code_change import CodeChange
from heron.planner.packing_plan import PackingPlan
from heron.planner.physical_plan import StreamManagerLocation, TopologyState
from heron.planner.runtime_config import ConfigChanges, with_changes
from heron.spi.metricsink import MetricsRecord
from heron.tmanager.leader.back_pressure_events import pressure_begun, pressure_ended
from heron.tmanager.leader.checkpoint_progress import (
    CheckpointReport,
)
from heron.tmanager.leader.instructions import (
    EndTopology,
    Instruction,
    NoteEvent,
    NotifyHook,
    PublishPlan,
    SendPlan,
    StoreManifest,
)
from heron.tmanager.leader.knowledge import Knowledge
from heron.tmanager.leader.long_call_reports import LongCallReport
from heron.tmanager.leader.membership import Registration
from heron.tmanager.leader.process_reports import ProcessReport
from heron.tmanager.leader.task_table import TaskEvent, TaskReport
from heron.tmanager.leader.topology_state import (
    SHOWN,
    STARTING,
    LifeEvent,
    LifePhase,
    Takeover,
    commanded,
)
from heron.tmanager.leader.update_progress import NO_OWNERS, OwnersByComponent

__all__ = ["Leader"]

_FATES = {TaskEvent.DIED: "died and is restarted", TaskEvent.GIVEN_UP: "died too often and is given up"}


class Leader:
    """The decisions of one leader; `known` is what they follow from, and answers questions."""

    def __init__(self, takeover: Takeover, settings: EngineSettings, clock: Clock) -> None:
        self.known = known = Knowledge(takeover, settings, clock)
        self._stop_on_failure = settings.on_failure == "stop"
        self._given = known.given
        self._clock = known.clock
        self._plans = known.plans
        self._life = known.life
        self._registry = known.registry
        self._checkpoints = known.checkpoints
        self._tasks = known.tasks
        self._update = known.update
        self._code = known.code
        self._processes = known.processes
        self._back_pressure = known.back_pressure
        self._long_calls = known.long_calls
        self._errors = known.errors
        self._ports_changed = False
        self._noted_failures = 0

    def begin(self) -> list[Instruction]:
        """The first instructions."""
        instructions: list[Instruction] = []
        if self._given.former_epoch:
            leader = self._given.leader
            facts = {"epoch": str(leader.epoch), "former": str(self._given.former_epoch), "pid": str(leader.pid)}
            instructions.append(NoteEvent("tmanager-took-over", f"tmanager-{leader.container_id}", facts))
        if self._given.report is not None:
            return [*instructions, EndTopology(self._given.report, f"the topology is {self._given.report.state}")]
        return [*instructions, *([PublishPlan(self.known.plan, self._plans.packing)] if self.known.plan else [])]

    def stmgr_registered(
        self, location: StreamManagerLocation, losses: int = 0, lost_by_task: Mapping[int, int] | None = None
    ) -> list[Instruction]:
        """A stream manager registers; `losses` says how often it has lost data, `lost_by_task` of which task.

        Raises:
            HeronError: when the packing plan does not have its container, or a newer incarnation has registered.
        """
        container_id = location.container_id
        if container_id not in self._plans.containers():
            msg = f"container {container_id} is not in packing plan {self._plans.packing.id!r}"
            raise HeronError(msg)
        registration = self._registry.register(location, self._clock.monotonic_s())
        if registration is Registration.STALE:
            msg = f"stream manager of container {container_id}: incarnation {location.incarnation} was replaced"
            raise HeronError(msg)
        instructions: list[Instruction] = []
        if registration not in {Registration.SAME, Registration.MOVED}:
            self.known.keys.forget(container_id)
            facts = {"incarnation": str(location.incarnation)}
            instructions.append(NoteEvent("stmgr-registered", f"stmgr-{container_id}", facts))
            instructions += self._lift(self._back_pressure.forget(container_id, self._clock.wall_s()))
        if self._checkpoints is not None:
            again = registration is Registration.SAME
            self._checkpoints.losses_reported(container_id, location.incarnation, losses, lost_by_task, again=again)
            if again and self._update.holds_checkpoints():
                self._update.checkpoint = 0  # a commit may be unheard, and no other checkpoint would be ordered
        before = self.known.plan
        if registration is Registration.MOVED:
            self._ports_changed = True  # of all containers at once, when keys rotate: the next tick makes one plan
        else:
            instructions += self._replan()
        instructions += self._continue_update()
        if self.known.plan is before and before is not None:
            instructions.append(SendPlan(container_id, before))
        return instructions

    def stmgr_heard(
        self,
        container_id: int,
        incarnation: int = 0,
        losses: int = 0,
        lost_by_task: Mapping[int, int] | None = None,
    ) -> list[Instruction]:
        """A stream manager has given a sign of life; `losses` says how often this incarnation has lost data."""
        if self._checkpoints is not None and self._registry.is_present(container_id, incarnation):
            self._checkpoints.losses_reported(container_id, incarnation, losses, lost_by_task)
        if self._registry.heard(container_id, self._clock.monotonic_s()):
            return [NoteEvent("stmgr-heard-again", f"stmgr-{container_id}")]
        return []

    def task_reported(self, report: TaskReport, totals: MetricsRecord | None = None) -> list[Instruction]:
        """A task reports its state; its last metrics come with its end."""
        if totals is not None:
            self.known.metrics_arrived(totals)
        if not self._tasks.take(report):
            return []
        component, container_id = self._tasks.place(report.task_id)
        facts = {"component": component, "container": str(container_id)}
        instructions: list[Instruction] = [
            NoteEvent(f"task-{report.event.name.lower()}", f"task-{report.task_id}", facts)
        ]
        if report.event is TaskEvent.FAILED:
            error = report.error or f"{self.known.who(report.task_id)}: failed without a reason"
            self._errors.add(error)
            if self._stop_on_failure and not self._code.spares(report.task_id):
                instructions += self._end(LifeEvent.FAILED, error)
        return instructions + self.check_due()

    def checkpoint_reported(self, report: CheckpointReport) -> list[Instruction]:
        """A task reports what it has done for a checkpoint."""
        if self._checkpoints is not None:
            self._checkpoints.reported(report)
        return self.check_due()

    def manifest_stored(self, number: int, error: str = "") -> list[Instruction]:
        """The manifest of a checkpoint is stored, or could not be."""
        if self._checkpoints is None or self.known.ended:
            return []
        changed = self._checkpoints.manifest_stored(number, error)
        facts = {"outcome": "complete" if changed else "abandoned"}
        noted = [] if error else [NoteEvent("checkpoint", f"checkpoint-{number}", facts)]
        return [*noted, *(self._replan() if changed else []), *self.check_due()]

    def checkpoint_asked(self) -> list[Instruction]:
        """A command asks for a checkpoint.

        Raises:
            HeronError: when the topology takes none, or is not running.
        """
        name = self._given.definition.name
        if self._checkpoints is None:
            msg = (
                f"topology {name!r} takes no checkpoints; set topology.reliability.mode to EFFECTIVELY_ONCE, or to "
                "ATLEAST_ONCE with topology.stateful.checkpoint.interval.seconds"
            )
            raise HeronError(msg)
        if self.known.plan is None or self.known.ended:
            msg = f"topology {name!r} is {self._life.state.value}; only a running topology takes checkpoints"
            raise HeronError(msg)
        self._checkpoints.ask()
        return self.check_due()

    def executor_registered(self, container_id: int, attempt: int, pid: int, host: str) -> None:
        """An executor registers, for the first time or again."""
        self._processes.begin(container_id, attempt, pid, host)

    def process_reported(self, report: ProcessReport) -> list[Instruction]:
        """An executor reports one of its processes."""
        self._processes.take(report)
        self._long_calls.forget(report.task_id)
        who = (
            self.known.who(report.task_id) if report.task_id else f"{report.process} of container {report.container_id}"
        )
        error = f"{who} {_FATES[report.event]}: {report.reason}" if report.event in _FATES else ""
        if report.task_id:
            task_report = TaskReport(report.task_id, report.incarnation, report.event, error, report.restarts)
            if not self._tasks.take(task_report):
                return []
            error = self._tasks.last_error(report.task_id) if error else ""
        if not error or self.known.ended:
            return []
        self._errors.add(error)
        spared = report.task_id > 0 and self._code.spares(report.task_id)
        if report.event is TaskEvent.GIVEN_UP and self._stop_on_failure and not spared:
            return self._end(LifeEvent.FAILED, error)
        return self._continue_update()

    def long_call_reported(self, report: LongCallReport) -> list[Instruction]:
        """A task reports a call of user code that lasts long, or the end of one."""
        (component, _), newest = self._tasks.place(report.task_id), self._tasks.incarnation(report.task_id)
        return self._long_calls.take(report, component, newest)

    def pressure_reported(self, task_id: int, container_id: int, *, on: bool, cause: str = "") -> list[Instruction]:
        """A stream manager reports a culprit of back pressure, or withdraws its report."""
        if on and container_id not in self._plans.containers():  # removed by an update: nobody would withdraw it
            return []
        changed = self._back_pressure.report(task_id, container_id, on=on, now_s=self._clock.wall_s(), cause=cause)
        if changed is None:
            return []
        if not on:
            return self._lift(((task_id, changed),))
        return pressure_begun(self.known.culprit(task_id), container_id, cause)

    def state_asked(self, state: str) -> list[Instruction]:
        """A command requests the state ``running``, ``paused`` or ``killed``.

        Raises:
            HeronError: when the topology cannot get this state.
        """
        event = commanded(state)
        if event is LifeEvent.KILLED and not self.known.ended:
            return self._end(event, "")
        if not self._life.allows(event):
            msg = f"topology {self._given.definition.name!r} is {self._life.state.value}, it cannot become {state}"
            raise HeronError(msg)
        self._life.handle(event)
        instructions = self._replan()
        if not instructions and self.known.plan is not None:
            # No change; but only a leader that can still write may confirm it.
            return [PublishPlan(self.known.plan, self._plans.packing)]
        return instructions

    def check_heartbeats(self) -> list[Instruction]:
        """A period of heartbeats is over: finds stream managers that have become silent, and what is due."""
        silent = self._registry.newly_silent(self._clock.monotonic_s())
        noted = [NoteEvent("stmgr-silent", f"stmgr-{each}") for each in silent]
        changed, self._ports_changed = self._ports_changed, False
        return [*noted, *(self._replan() if changed else []), *self.check_due()]

    def due_s(self) -> float:
        """When a checkpoint or a restore has to go on without an event (monotonic seconds).

        Infinite for never, past for soon.
        """
        if self._checkpoints is None or self.known.ended or self.known.plan is None:
            return math.inf
        return self._checkpoints.due_s()

    def check_due(self) -> list[Instruction]:
        """Everything that may be due after an event; called also at `due_s`."""
        return self._continue_update() + self._continue_checkpoint() + self._finish_if_done()

    def _continue_checkpoint(self) -> list[Instruction]:
        if self._checkpoints is None or self.known.ended or self.known.plan is None:
            return []
        missing = self._plans.containers(starting=False) - self._registry.locations().keys()
        held = self._code.holds_checkpoints() or self._update.holds_checkpoints()
        changed = self._checkpoints.step(may_order=not (missing or held))
        instructions: list[Instruction] = []
        failed, number, reason = self._checkpoints.failures
        if failed != self._noted_failures:
            self._noted_failures = failed
            facts = {"outcome": "failed", "reason": reason}
            instructions.append(NoteEvent("checkpoint", f"checkpoint-{number}", facts))
        if changed:
            status = self._checkpoints.status()
            restores = self.known.plan.checkpoints.all_restores() if self.known.plan.checkpoints else 0
            instructions.append(
                NoteEvent(
                    "restore", f"restore-{status.restores}", {"source": status.source, "reason": status.last_loss}
                )
                if status.restores > restores
                else NoteEvent("checkpoint", f"checkpoint-{status.number}", {"outcome": "ordered"})
            )
            instructions += self._replan()
        manifest = self._checkpoints.take_manifest()
        return [*instructions, *([StoreManifest(manifest, self.known.plan.update is not None)] if manifest else [])]

    def update_asked(
        self, target: PackingPlan, base: str, owners: OwnersByComponent = NO_OWNERS, code: CodeChange | None = None
    ) -> list[Instruction]:
        """A command requests other tasks, other owners of key groups, or new `code` for the new tasks.

        `target` was made from the packing plan with the id `base`.

        Raises:
            HeronError: when the topology does not run, another update is under way, or it cannot have this plan.
        """
        name = self._given.definition.name
        if self.known.plan is None or self._life.state is not LifePhase.RUNNING:
            msg = f"topology {name!r} is {self._life.state.value}; only a running topology can be updated"
            raise HeronError(msg)
        if code is not None:
            begun = self._code.begin(self.known.plan, target, base, code)
        elif refusal := self._code.refusal():
            raise HeronError(refusal)
        else:
            begun = self._update.begin(self.known.plan, self._given.definition, target, base, owners)
        if not begun:
            return [PublishPlan(self.known.plan, self._plans.packing)]
        if code is None:
            return self._update_changed()
        return [*_noted_code(self._code.status()), *self._update_changed(), *self._continue_update()]

    def config_asked(self, changes: ConfigChanges) -> list[Instruction]:
        """A command requests other values in the configuration; the next plan has them.

        Raises:
            ConfigError: when a component, a key or a value is wrong.
            HeronError: when the topology has not started, or has ended.
        """
        if self.known.plan is None or self.known.ended:
            msg = f"topology {self._given.definition.name!r} is {self._life.state.value}; it must run to be configured"
            raise HeronError(msg)
        definition, code = with_changes(self._plans.definition, changes), self._plans.code
        if code is not None:
            self._plans.code = replace(code, topology=with_changes(code.topology, changes))
        self._plans.definition = definition
        # Without a change too, only a leader that can still write may confirm it.
        return self._replan() or [PublishPlan(self.known.plan, self._plans.packing)]

    def withdrawal_asked(self, reason: str) -> list[Instruction]:
        """A command withdraws the update under way, or new code after the update that has brought it.

        Raises:
            HeronError: when there is none, or it cannot be withdrawn any more.
        """
        if self._code.withdraw(reason):
            return self._continue_update() or self._replan()
        self._update.withdraw(reason)
        return self._update_changed() + self._continue_update()

    def _continue_update(self) -> list[Instruction]:
        instructions: list[Instruction] = []
        while not self.known.ended:
            if self._update.step():
                instructions += self._update_changed()
            elif self._code.step(self.known.plan):
                instructions += [*_noted_code(self._code.status()), *self._update_changed(noted=False)]
            else:
                break
        return instructions

    def _update_changed(self, *, noted: bool = True) -> list[Instruction]:
        """The plan of the next phase; or of the end of the update, which removes tasks and containers."""
        containers = self._plans.containers()
        lifted = self._lift(self._back_pressure.keep(containers, self._clock.wall_s()))
        self._tasks.set_packing(self._plans.packing)
        self._registry.keep(containers)
        self._processes.keep(containers | {0}, {each.task_id for _, each in self._plans.packing.instances()})
        status = self._update.status()
        if status is None or not noted:
            return [*lifted, *self._replan()]
        facts = {"phase": status.phase, **({"reason": status.waits_for} if status.phase == "withdrawn" else {})}
        return [*lifted, NoteEvent("update", f"update-{status.number}", facts), *self._replan()]

    def _replan(self) -> list[Instruction]:
        """Makes a new plan if the registrations or the state have changed."""
        if self.known.ended:
            return []
        state = SHOWN[self._life.state]
        plan = self._plans.next_plan(self.known.plan, self._registry.locations(), state)
        if plan is None or plan is self.known.plan:
            return []
        before, self.known.plan = self.known.plan, plan
        if self._life.state in STARTING:
            self._life.handle(LifeEvent.PLANNED)
        facts: dict[str, object] = {"topology": self._given.definition.name, "version": plan.version}
        instructions: list[Instruction] = [
            NoteEvent("plan-changed", "plan", {"version": str(plan.version), "state": state.value}),
            PublishPlan(plan, self._plans.packing),
            NotifyHook("heron_plan_changed", facts),
        ]
        if before is not None and before.state is not plan.state:
            hook = "heron_topology_deactivated" if plan.state is TopologyState.PAUSED else "heron_topology_activated"
            instructions.append(NotifyHook(hook, {"topology": self._given.definition.name}))
        return instructions + self._finish_if_done()

    def _finish_if_done(self) -> list[Instruction]:
        done = self._tasks.all_ended() and self._life.allows(LifeEvent.FINISHED)
        done = done and (self._checkpoints is None or self._checkpoints.is_final())
        return self._end(LifeEvent.FINISHED, "") if done else []

    def _end(self, event: LifeEvent, error: str) -> list[Instruction]:
        if not self._life.allows(event):
            return []
        state = self._life.handle(event)
        self.known.error = error
        self.known.ended_at_s = self._clock.wall_s()
        facts = {"state": state.value, **({"error": error} if error else {})}
        instructions: list[Instruction] = [
            NoteEvent("topology-ended", "topology", facts),
            EndTopology(self.known.status(), f"the topology is {state.value}"),
        ]
        if event is not LifeEvent.KILLED and not self._given.attached:  # else the command notifies the observers
            ended: dict[str, object] = {
                "topology": self._given.definition.name,
                "topology_id": self._given.topology_id,
                "state": state.value,
            }
            instructions.append(NotifyHook("heron_topology_ended", ended))
        return instructions

    def _lift(self, ended: tuple[tuple[int, float], ...]) -> list[Instruction]:
        notes = (pressure_ended(self.known.culprit(task_id), duration_s) for task_id, duration_s in ended)
        return [each for parts in notes for each in parts]


def _noted_code(status: CodeStatus | None) -> list[Instruction]:
    if status is None:
        return []
    reason = {"reason": status.reason} if status.reason else {}
    return [NoteEvent("code", "code", {"phase": status.phase, "package": status.package, **reason})]
