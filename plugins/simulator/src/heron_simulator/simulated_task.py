"""What simulated spouts and bolts share: the parts of an instance without its gateway, and the component's life."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from heron.api.api_constants import TOPOLOGY_ON_ERROR
from heron.api.bolt import Bolt
from heron.api.config import merged_config
from heron.api.definition import InputDefinition
from heron.api.spout import Spout
from heron.api.stream import ICustomGrouping
from heron.api.window_bolt import WindowBolt
from heron.clock import Clock
from heron.errors import TopologyFailedError
from heron.instance.data_queue import Sleeper
from heron.instance.emitter import Emitter
from heron.instance.out_stream import OutStream, StreamOrigin
from heron.instance.serializers import Serializers
from heron.instance.stream_routes import routes_of
from heron.instance.task_context import TaskContext
from heron.instance.task_metrics import TaskMetrics
from heron.instance.threadsafe import QueuedCollector, QueuedTarget
from heron.instance.user_component import initialise
from heron.instance.user_errors import UserErrors
from heron.kernel.settings import EngineSettings
from heron.planner.physical_plan import PlanIndex, TaskPlan
from heron_simulator.ack_ledger import AckLedger
from heron_simulator.author_code import AuthorCode
from heron_simulator.counts import ComponentCounts
from heron_simulator.outbox import Inboxes, Outbox

__all__ = ["SimulatedTask", "World"]


@dataclass(frozen=True, slots=True)
class World:
    """What all tasks of a simulation share; `ledger` is None where delivery is at most once."""

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

    def __init__(self, world: World, plan: TaskPlan) -> None:
        topology = world.index.plan.topology
        self.world = world
        self.plan = plan
        self.definition = topology.component(plan.component)
        self.config = merged_config(topology.config, self.definition.config)
        self.metrics = TaskMetrics()
        self.errors = UserErrors(topology.name, plan.component, plan.task_id)
        self.outbox = Outbox(world.inboxes, world.ledger)
        self.ended = False
        self._target = QueuedTarget()
        self._queued = QueuedCollector(self._target, world.sleeper)
        self._context = TaskContext(world.index, plan.task_id, self.metrics, self._queued)
        self._stops_on_error = self.config.get(TOPOLOGY_ON_ERROR) == "stop"
        self._shown: list[str] = []

    @property
    @abstractmethod
    def component(self) -> Spout | Bolt:
        """The author's object."""

    @property
    @abstractmethod
    def emitter(self) -> Emitter:
        """Its collector."""

    @abstractmethod
    def construct(self, component_class: type, target: QueuedTarget) -> None:
        """Makes the author's object, and tells `target` its methods."""

    @abstractmethod
    def work(self) -> bool:
        """Runs user code for one turn; whether there was anything to do."""

    @abstractmethod
    def due_s(self) -> float:
        """When the passing of time alone gives this task something to do; infinite when it does not."""

    def start(self) -> None:
        """Constructs and initialises the component.

        Raises:
            TopologyFailedError: when that fails.
        """
        self._guarded("loading the topology's file", self._load)
        self._guarded("the constructor", lambda: self.construct(self._class, self._target))
        self._guarded("initialize", self._initialise)

    def step(self) -> bool:
        """One turn; whether there was anything to do.

        Raises:
            TopologyFailedError: when `finish` failed, or user code while `topology.on.error` says stop.
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
            except Exception as error:
                self.errors.report(doing, error, "the task ends all the same")

    def end(self) -> None:
        """Nothing more will come from this task."""
        self.ended = True
        self.emitter.send_end(self.world.index.downstream_tasks(self.plan.component))

    def user_failed(self, doing: str, error: BaseException, remedy: str, record: object = None) -> None:
        """Shows and counts a failure of user code.

        Raises:
            TopologyFailedError: when `topology.on.error` says stop.
        """
        line = self.errors.report(doing, error, remedy, record)
        if self._stops_on_error:
            raise TopologyFailedError(line) from error

    def set_streams(self, ids: list[object] | None = None) -> None:
        """Makes the output streams with their routes."""
        task_id, origin = self.plan.task_id, self.emitter.origin
        streams = [
            OutStream(number, each, routes_of(self.world.index, task_id, each, self._custom(each.name)), origin)
            for number, each in enumerate(self.definition.outputs)
        ]
        self.emitter.set_streams(streams, ids=ids)

    def origin(self) -> StreamOrigin:
        """What the task's segments say of themselves."""
        settings, plan = self.world.settings, self.world.index.plan
        limits = (settings.batch_rows, settings.batch_bytes, settings.tuple_max_bytes)
        serializer = self.world.serializers.chosen(self.config)
        return StreamOrigin(self.plan.task_id, 1, plan.version, *limits, self._reject, serializer)

    def emitted(self) -> int:
        """Tuples emitted so far, over all streams."""
        return sum(self.emitter.emitted(name) for name in self.emitter.streams)

    def counts(self) -> ComponentCounts:
        """What this task did so far."""
        return ComponentCounts(self.emitted(), self.metrics.executed_total(), self.metrics.acked, self.metrics.failed)

    def failures(self) -> list[str]:
        """Each distinct failure of user code so far, one line each."""
        self._shown += [event.attributes["message"] for event in self.errors.take_events()]
        return self._shown

    def _load(self) -> None:
        self._class = self.world.code.component_class(self.definition.entry)
        self.errors.locate(self._class)
        self.errors.locate(self._class)

    def _initialise(self) -> None:
        component = self.component
        if isinstance(component, WindowBolt):
            component.clock = self.world.clock
        self.set_streams()
        initialise(component, self.config, self._context)
        self.emitter.hooks = tuple(self._context.hooks)
        self.emitter.flush()

    def _guarded(self, doing: str, action: Callable[[], None]) -> None:
        try:
            action()
        except Exception as error:
            line = self.errors.report(doing, error, "correct it and run the topology again")
            raise TopologyFailedError(line) from error

    def _custom(self, stream: str) -> Callable[[str, InputDefinition], ICustomGrouping]:
        def custom(consumer: str, subscription: InputDefinition) -> ICustomGrouping:
            grouping = self.world.code.custom_grouping(consumer, subscription)
            if subscription.grouping.entry is None:
                grouping = copy.deepcopy(grouping)  # on processes each emitting task has an object of its own
            grouping.prepare(self._context, self.plan.component, stream, self.world.index.tasks_of(consumer))
            return grouping

        return custom

    def _queued_failed(self, error: Exception) -> None:
        self.user_failed("a call of the thread-safe collector", error, "this call is lost, the task goes on")

    def _reject(self, stream: str, row: object, error: Exception) -> None:
        self.metrics.failed += 1
        self.errors.report(f"emit on stream {stream!r}", error, "this tuple is lost, the task goes on", row)
        if self.world.ledger is not None:
            self.world.ledger.fail_roots(self.outbox.roots)
