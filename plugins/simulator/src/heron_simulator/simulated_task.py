"""The base of simulated spouts and bolts: the parts of an instance without its gateway, and the component's life."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from heron.api.api_constants import TOPOLOGY_ON_ERROR
from heron.api.bolt import Bolt
from heron.api.config import merged_config
from heron.api.dead_letter import DeadLetter, FailedRecordError
from heron.api.definition import InputDefinition
from heron.api.spout import Spout
from heron.api.stream import ICustomGrouping
from heron.clock import Clock, SystemClock
from heron.errors import TopologyFailedError
from heron.instance.codec.serializers import Serializers
from heron.instance.metrics.task_metrics import TaskMetrics
from heron.instance.output.emitter import Emitter
from heron.instance.output.out_stream import OutStream
from heron.instance.output.stream_origin import StreamOrigin
from heron.instance.output.stream_routes import routes_of
from heron.instance.queues.data_queue import Sleeper
from heron.instance.state.keyed_state import KeyedStateStore
from heron.instance.state.owned_groups import has_single_keys
from heron.instance.user.queued_collector import QueuedCollector, QueuedTarget
from heron.instance.user.task_context import TaskContext
from heron.instance.user.user_component import initialise
from heron.instance.user.user_errors import UserErrors
from heron.ipc.frames.frame import Marker
from heron.kernel.settings import EngineSettings
from heron.planner.key_group import key_groups_of
from heron.planner.physical_plan import PlanIndex, TaskPlan
from heron_simulator.ack_ledger import AckLedger
from heron_simulator.author_code import AuthorCode
from heron_simulator.delivery import Inboxes, Outbox

__all__ = ["ComponentCounts", "SimulatedTask", "SimulationEnvironment"]


@dataclass(frozen=True, slots=True)
class ComponentCounts:
    """What a component did, over all its tasks, in tuples."""

    emitted: int = 0
    executed: int = 0
    acked: int = 0
    failed: int = 0

    def __add__(self, other: ComponentCounts) -> ComponentCounts:
        return ComponentCounts(
            self.emitted + other.emitted,
            self.executed + other.executed,
            self.acked + other.acked,
            self.failed + other.failed,
        )


@dataclass(frozen=True, slots=True)
class SimulationEnvironment:
    """The objects that all tasks of a simulation share; `ledger` is None at most once."""

    index: PlanIndex
    settings: EngineSettings
    clock: Clock
    code: AuthorCode
    inboxes: Inboxes
    ledger: AckLedger | None
    sleeper: Sleeper
    serializers: Serializers


class SimulatedTask(ABC):
    """One task; `step` is its turn in the schedule."""

    def __init__(self, environment: SimulationEnvironment, plan: TaskPlan) -> None:
        topology = environment.index.plan.topology
        self.environment = environment
        self.plan = plan
        self.definition = topology.component(plan.component)
        self.config = merged_config(topology.config, self.definition.config)
        self.metrics = TaskMetrics()
        self.errors = UserErrors(topology.name, plan.component, plan.task_id)
        self.errors.shows_values = lambda: True  # nobody else sees the process of a simulation
        self.errors.fields_of = topology.fields_of
        self.metrics.on_broken = self.errors.report
        self.dead_letters: list[DeadLetter] = []  # those that no bolt receives
        self.errors.add_letter = self.dead_letters.append
        self.outbox = Outbox(environment.inboxes, environment.ledger)
        self.ended = False
        self._target = QueuedTarget()
        self._queued = QueuedCollector(self._target, environment.sleeper)
        groups, single = key_groups_of(topology), has_single_keys(self.definition)
        keyed = KeyedStateStore(plan.component, plan.task_id, groups, environment.clock, single=single)
        keyed.set_owned(lambda: environment.index.owned_groups(plan.task_id))
        self._context = TaskContext(environment.index, plan.task_id, self.metrics, self._queued, keyed)
        self._stops_on_error = self.config.get(TOPOLOGY_ON_ERROR) == "stop"
        self._shown: list[str] = []

    @property
    @abstractmethod
    def component(self) -> Spout | Bolt:
        """The author's object."""

    @property
    @abstractmethod
    def emitter(self) -> Emitter:
        """The task's collector."""

    @abstractmethod
    def construct(self, component_class: type, target: QueuedTarget) -> None:
        """Makes the author's object, and sets its methods as the target of queued calls."""

    @abstractmethod
    def work(self) -> bool:
        """Runs user code for one turn; returns whether there was work."""

    @abstractmethod
    def due_s(self) -> float:
        """When the task has work only because time has passed; infinite if never."""

    def start(self) -> None:
        """Constructs and initialises the component.

        Raises:
            TopologyFailedError: when the constructor or `initialize` fails.
        """
        self._guarded("loading the topology's file", self._load)
        self._guarded("the constructor", self._construct)
        self._guarded("initialize", self._initialise)

    def step(self) -> bool:
        """Takes one turn; returns whether there was work.

        Raises:
            TopologyFailedError: when `finish` failed, or other user code while `topology.on.error` is ``stop``.
        """
        before = self.emitted()
        self._queued.drain(self._queued_failed)
        return self.work() or self.emitted() != before

    def close(self) -> None:
        """Closes the component and its hooks."""
        for doing, action in (
            ("close", self.component.close),
            *(("clean_up", h.clean_up) for h in self._context.hooks),
        ):
            try:
                action()
            except (Exception, SystemExit) as error:
                self.errors.report(doing, error, "the task ends anyway")

    def end(self) -> None:
        """Ends the task, and sends END markers downstream."""
        self.ended = True
        self.emitter.send_marker(Marker.END, self.environment.index.downstream_tasks(self.plan.component))

    def user_failed(
        self, doing: str, error: BaseException, remedy: str, record: object = None, *, place: str = ""
    ) -> None:
        """Shows and counts a failure of user code; `place` is as for `UserErrors.report`.

        Raises:
            TopologyFailedError: when `topology.on.error` is ``stop``, or the error is that of `sys.exit`.
        """
        if FailedRecordError.ends_task(error, self._stops_on_error) or not isinstance(error, Exception):
            line = self.errors.report(doing, error, "the simulation ends", record, place=place)
            raise TopologyFailedError(line) from error
        self.errors.note(doing, error, remedy, record, place=place)

    def component_reported(self, error: Exception) -> None:
        """Shows and counts an error that the component reports; with `topology.on.error: stop` its call ends by it."""
        if FailedRecordError.ends_task(error, self._stops_on_error):
            raise error
        self.user_failed("the component", error, "the task continues")

    def set_streams(self, ids: list[object] | None = None) -> None:
        """Makes the output streams with their routes."""
        task_id, origin = self.plan.task_id, self.emitter.origin
        streams = [
            OutStream(number, each, routes_of(self.environment.index, task_id, each, self._custom(each.name)), origin)
            for number, each in enumerate(self.definition.outputs)
        ]
        self.emitter.set_streams(streams, ids=ids)

    def origin(self) -> StreamOrigin:
        """The origin that the task's segments carry, and the limits of its batches."""
        settings, plan = self.environment.settings, self.environment.index.plan
        limits = (settings.batch_rows, settings.batch_bytes, settings.tuple_max_bytes)
        serializer = self.environment.serializers.for_output(self.config)
        found = self.environment.serializers
        return StreamOrigin(self.plan.task_id, 1, plan.version, *limits, self._reject, serializer, found, self.config)

    def emitted(self) -> int:
        """Tuples emitted so far, over all streams."""
        return sum(self.emitter.emitted(name) for name in self.emitter.streams)

    def counts(self) -> ComponentCounts:
        """The counts of this task so far."""
        return ComponentCounts(self.emitted(), self.metrics.executed_total(), self.metrics.acked, self.metrics.failed)

    def failures(self) -> list[str]:
        """Each distinct failure of user code so far, one line each."""
        self._shown += [event.attributes["message"] for event in self.errors.take_events()]
        return self._shown

    def _load(self) -> None:
        self._class = self.environment.code.component_class(self.definition.entry)
        self.errors.locate(self._class)

    def _construct(self) -> None:
        self.construct(self._class, self._target)

    def _initialise(self) -> None:
        component = self.component
        if isinstance(getattr(component, "clock", None), SystemClock):
            component.clock = self.environment.clock  # type: ignore[union-attr]  # windows by the clock have it
        self.set_streams()
        self.emitter.on_error = self.component_reported
        initialise(component, self.config, self._context)
        self.errors.locate(self._class, component.author_place)
        self.emitter.hooks = tuple(self._context.hooks)
        self.emitter.flush()

    def _guarded(self, doing: str, action: Callable[[], None]) -> None:
        try:
            action()
        except (Exception, SystemExit) as error:
            line = self.errors.report(doing, error, "correct it and run the topology again")
            raise TopologyFailedError(line) from error

    def _custom(self, stream: str) -> Callable[[str, InputDefinition], ICustomGrouping]:
        def custom(consumer: str, subscription: InputDefinition) -> ICustomGrouping:
            grouping = self.environment.code.custom_grouping(consumer, subscription)
            if subscription.grouping.entry is None:
                grouping = copy.deepcopy(grouping)  # on processes, each emitting task has its own object
            grouping.prepare(self._context, self.plan.component, stream, self.environment.index.tasks_of(consumer))
            return grouping

        return custom

    def _queued_failed(self, error: BaseException, place: str) -> None:
        doing, remedy = "a call of the thread-safe collector", "the call is lost and the task continues"
        self.user_failed(doing, error, remedy, place=place)

    def _reject(self, stream: str, row: object, error: Exception) -> None:
        self.metrics.failed += 1
        self.errors.rejected(self.definition, stream, row, error)
        if self.environment.ledger is not None:
            self.environment.ledger.fail_roots(self.outbox.roots)
