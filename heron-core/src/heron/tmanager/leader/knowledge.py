"""What the leading topology manager knows, and its answers to questions. Pure; the leader changes it."""

from __future__ import annotations

from collections.abc import Collection

from heron.api.config import takes_checkpoints
from heron.clock import Clock
from heron.errors import HeronError
from heron.ipc.documents.metrics_table import MetricsTable
from heron.ipc.documents.status import CheckpointStatus, TopologyStatus, Unreached
from heron.kernel.settings import EngineSettings
from heron.spi.metricsink import MetricsRecord
from heron.state_machine import StateMachine
from heron.tmanager.leader.back_pressure_reports import BackPressureReports
from heron.tmanager.leader.checkpoint_progress import CheckpointProgress
from heron.tmanager.leader.checkpoint_run import checkpoint_run, first_checkpoints
from heron.tmanager.leader.code_progress import CodeProgress
from heron.tmanager.leader.key_reports import KeyReports
from heron.tmanager.leader.long_call_reports import LongCallReports
from heron.tmanager.leader.membership import PlanMaker, Registry
from heron.tmanager.leader.process_reports import ProcessTable
from heron.tmanager.leader.status_parts import ErrorList, component_statuses, culprits, silent_text, standbys
from heron.tmanager.leader.task_questions import AskedPlace, check_inspection, check_selection
from heron.tmanager.leader.task_table import TaskTable
from heron.tmanager.leader.topology_state import ENDED, SHOWN, TABLE, Takeover
from heron.tmanager.leader.update_progress import UpdateProgress
from heron.tmanager.leader.user_error_table import UserErrorTable
from heron.tmanager.metrics.metrics_store import MetricsStore

__all__ = ["Knowledge"]

_QUIET_BEATS = 3  # a stream manager that misses that many heartbeats is reported as unreached


class Knowledge:
    """The tables of one leader, the plan that it has published last, and the phase of the topology."""

    def __init__(self, takeover: Takeover, settings: EngineSettings, clock: Clock) -> None:
        self.given = takeover
        self.clock = clock
        self.plans = PlanMaker(
            takeover.definition, takeover.packing, takeover.topology_id, takeover.leader.epoch, takeover.plan
        )
        self.plan = self.plans.taken_over(takeover.plan) if takeover.plan else None
        self.life = StateMachine(f"topology {takeover.definition.name!r}", TABLE, takeover.first_phase())
        self.registry = Registry(settings.silence_s)
        # Report stream managers of the former plan that do not return; reject older incarnations.
        for stmgr in self.plan.stmgrs if self.plan else ():
            self.registry.register(stmgr, clock.monotonic_s())
        self.quiet_s = _QUIET_BEATS * settings.heartbeat_s
        self.checkpoints: CheckpointProgress | None = None
        orders = self.plans.checkpoints
        self.tasks = TaskTable(takeover.packing, self._restores_of)
        if takes_checkpoints(takeover.definition.config):
            self.plans.checkpoints = orders or first_checkpoints(takeover.definition)
            run = checkpoint_run(takeover.definition, takeover.topology_id, settings)
            self.checkpoints = CheckpointProgress(run, self.plans, self.tasks, clock)
        self.update = UpdateProgress(
            self.plans, self.tasks, self.registry, settings.update_prepare_s, clock, self.checkpoints
        )
        self.code = CodeProgress(self.plans, self.tasks, self.update, takeover.definition, clock)
        self.processes = ProcessTable()
        self.metrics = MetricsStore(settings.metrics_export_s)
        self.back_pressure = BackPressureReports()
        self.long_calls = LongCallReports(clock)
        self.keys = KeyReports()
        self.user_errors = UserErrorTable()
        self.errors = ErrorList()
        for each in takeover.troubles:
            self.errors.add(each)
        self.waiting_plan = ""
        self.error = takeover.report.error if takeover.report else ""
        self.ended_at_s: float | None = None

    @property
    def ended(self) -> bool:
        """Whether the topology is over."""
        return self.life.state in ENDED

    def containers(self) -> set[int]:
        """All containers of the topology, container 0 among them."""
        return {0} | self.plans.containers()

    def plan_waits(self, reason: str) -> None:
        """Sets the reason why the newest plan is not published yet, for the status; "" after publication."""
        self.waiting_plan = reason

    def metrics_arrived(self, record: MetricsRecord) -> None:
        """Metrics and events of any process."""
        self.metrics.take(record, self.clock.monotonic_s())
        self.user_errors.take(record)
        for event in record.events:
            if event.name == "user-error" and (message := event.attributes.get("message", "")):
                self.errors.add(message)
                self.tasks.note_error(record.source.task_id, message)

    def metrics_table(self, component: str, task_id: int, *, by_task: bool, names: Collection[str]) -> MetricsTable:
        """The newest metrics of these names of a component, of a task, or of all ("", 0 and no names).

        Raises:
            HeronError: when the topology lacks the component or the task. The message lists the known ones.
        """
        check_selection(self._components(), component, task_id)
        return self.metrics.table(component, task_id, by_task=by_task, names=names, now_s=self.clock.monotonic_s())

    def asked_task(self, component: str, task_id: int, *, tuples: bool = False) -> AskedPlace:
        """The component, the container and the process of a task that a command asks about.

        Raises:
            HeronError: when the topology lacks the task, another component has it, or its tuples may not be shown.
        """
        components = self._components()
        check_selection(components, component, task_id)
        if task_id not in components:  # 0 selects all, and one task has to answer
            msg = f"{task_id} is not the id of a task; give one of those that `heron status` shows"
            raise HeronError(msg)
        check_inspection(self.plans.definition, components[task_id], wanted=tuples)
        process = next((each for each in self.processes.statuses() if each.task_id == task_id), None)
        return (*self.tasks.place(task_id), process)

    def status(self) -> TopologyStatus:
        """The status of the topology."""
        if self.given.report is not None:
            return self.given.report
        return TopologyStatus(
            topology=self.given.definition.name,
            topology_id=self.given.topology_id,
            state=SHOWN[self.life.state].value,
            started_at_s=self.given.started_at_s,
            error=self.error,
            plan_version=self.plan.version if self.plan else 0,
            first_tuple_at_s=self.metrics.first_tuple_at_s,
            components=component_statuses(
                self.given.definition,
                self.plans.packing,
                self.tasks.former,
                self.metrics,
                self.clock.monotonic_s(),
            ),
            tasks=self.tasks.statuses(),
            backpressure=culprits(self.back_pressure, self.tasks),
            errors=self._present_errors(),
            processes=self.processes.statuses(),
            ended_at_s=self.ended_at_s,
            outages=self.metrics.outages(self.clock.monotonic_s()),
            leader=self.given.leader,
            standbys=standbys(self.processes.statuses(), self.given.leader),
            unreached=self._unreached(self.clock.monotonic_s()),
            update=self.update.status(),
            code=self.code.status(),
            checkpoints=self.checkpoint_status(),
            long_calls=() if self.ended else self.long_calls.statuses(),
            keys=() if self.ended else self.keys.statuses(self.plans.containers()),
            user_errors=self.user_errors.statuses(),
        )

    def checkpoint_status(self) -> CheckpointStatus | None:
        """The checkpoints of the topology; None if it takes none."""
        return self.checkpoints.status() if self.checkpoints is not None else None

    def culprit(self, task_id: int) -> dict[str, object]:
        """A task that causes back pressure, as observers hear of it."""
        component, _ = self.tasks.place(task_id)
        return {"topology": self.given.definition.name, "component": component, "task_id": task_id}

    def who(self, task_id: int) -> str:
        """A task, as errors name it."""
        component, container_id = self.tasks.place(task_id)
        name = self.given.definition.name
        return f"topology {name!r}, component {component!r}, task {task_id} (container {container_id})"

    def _restores_of(self, component: str) -> int:
        return self.checkpoints.restores.number_of(component) if self.checkpoints is not None else 0

    def _components(self) -> dict[int, str]:
        return {instance.task_id: instance.component for _, instance in self.plans.packing.instances()}

    def _present_errors(self) -> tuple[str, ...]:
        return (*self.errors.texts(), *map(silent_text, self.registry.silent()), *filter(None, [self.waiting_plan]))

    def _unreached(self, now_s: float) -> tuple[Unreached, ...]:
        own = self.registry.silent_s(self.quiet_s, now_s)
        unheard = tuple(Unreached(container_id, 0, silent_s) for container_id, silent_s in sorted(own.items()))
        return unheard + self.metrics.unreached(now_s)
