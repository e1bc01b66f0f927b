"""The base of spout and bolt runners: the component's life around its work, commands, and failures of user code.

A runner is the seam between the gateway and user code. Runners for other kinds of components (columns, async, another
language) can replace it and keep the same life.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from heron.api import global_metrics
from heron.api.api_constants import TOPOLOGY_DEBUG, TOPOLOGY_ON_ERROR
from heron.api.bolt import Bolt
from heron.api.dead_letter import FailedRecordError
from heron.api.definition import ComponentDefinition
from heron.api.spout import Spout
from heron.api.state import ITwoPhaseStatefulComponent
from heron.api.updatable import IUpdatable
from heron.clock import monotonic_s
from heron.driver_kit.signals import Signals
from heron.errors import KeyedStateError, UserCodeError
from heron.instance.output.emitter import Emitter
from heron.instance.queues.data_queue import Command, FramesRefused, LettersAsked, PlanReceived, SessionOpened
from heron.instance.task import Task
from heron.instance.user.failure_places import FailurePlace
from heron.instance.user.user_component import initialise
from heron.ipc import control_pb2 as pb
from heron.ipc.frames.frame import Marker
from heron.planner.physical_plan import PhysicalPlan, PlanIndex, UpdatePhase

if TYPE_CHECKING:  # topologies without checkpoints need not import it
    from heron.instance.state.task_checkpoints import TaskCheckpoints

__all__ = ["ComponentExitedError", "ComponentRunner", "ComponentStartError", "ComponentStoppedError", "rest_s"]


_REMOVED_WITHIN_S = 1.0  # from the signal of the executor to the plan from the stream manager; both are sent together

_LOOK_S = 0.25  # between two looks at what threads of the author have emitted and acked without their collector

_EXITS = "the task ends and is restarted; raise an Exception to fail a tuple, call end() to end a spout"
_STOPS = "the task ends, because on_error or topology.on.error is 'stop' for it"

_log = logging.getLogger(__name__)


class ComponentStartError(UserCodeError):
    """The component could not be constructed or initialised."""


class ComponentStoppedError(UserCodeError):
    """The component failed in `finish`, or while `topology.on.error` is ``stop``."""


class ComponentExitedError(UserCodeError):
    """The author's code has asked the process to end, with exit code 1: `sys.exit`, `KeyboardInterrupt` or the like."""


class ComponentRunner(ABC):
    """Runs one component on the task thread, from its construction to its close."""

    def __init__(self, task: Task, emitter: Emitter, signals: Signals, component_class: type) -> None:
        self.task = task
        self.emitter = emitter
        self._signals = signals
        emitter.stop_requested = self._stop_requested
        emitter.on_error = self._component_reported
        self._class = component_class
        task.errors.locate(component_class)
        self._stops_on_error = task.config.get(TOPOLOGY_ON_ERROR) == "stop"
        self._has_left = False
        self.ended = False
        emitter.put = _outlet(task)

    @abstractmethod
    def work(self) -> None:
        """One round: runs user code for a few milliseconds, or waits for work."""

    @abstractmethod
    def specialise(self) -> None:
        """Replaces methods of the component by methods that are generated for the present plan."""

    @property
    @abstractmethod
    def component(self) -> Spout | Bolt:
        """The author's object."""

    def run(self, ended: bool, started: Callable[[], object] | None = None) -> None:
        """Runs until the process is asked to stop. A task that `ended` in an earlier incarnation only reports it again.

        `started` is called when the component is initialised.

        Raises:
            ComponentStartError: when the component cannot be constructed or initialised.
            ComponentStoppedError: when it failed and `topology.on.error` is ``stop``.
        """
        if ended and self.task.checkpoints is None:
            self._rest()
        else:
            self._start()
        if started is not None:
            started()
        gateway, data_in = self.task.gateway, self.task.gateway.data_in
        while not self._signals.stop_requested:
            gateway.rounds += 1
            self.work()
            self.task.queued.drain(self._queued_failed)
            self._flush_state()
            self.task.telemetry.publish_if_due(self.emitter, monotonic_s())
            if (checkpoints := self.task.checkpoints) is not None:
                self._continue_saving(checkpoints)
            while (command := data_in.peek_command()) is not None:
                data_in.get()
                self.handle(command)
                data_in.sleeper.nudge()  # what it has begun or completed is looked at before the task sleeps
        self._await_removal()
        if not ended or self.task.checkpoints is not None:
            self._close()

    def handle(self, command: Command) -> None:
        """Carries out a command of the gateway."""
        if isinstance(command, PlanReceived) and not self.task.is_member_of(command.plan):
            self._leave(command.plan)
        elif isinstance(command, PlanReceived):
            self._take_plan(command.plan)
        elif isinstance(command, SessionOpened):
            self._repeat_markers()
            self.task.telemetry.repeat_report()
        elif isinstance(command, FramesRefused):
            self.task.frames_refused(command.reason, command.rows)
        elif isinstance(command, LettersAsked):
            self.task.telemetry.answer_letters(command, self.task.take_letters)

    def end(self) -> None:
        """Ends the task: sends END markers downstream, and reports to the topology manager."""
        self.ended = True
        self.emitter.send_marker(Marker.END, self._downstream())
        self.task.telemetry.report(pb.TASK_PHASE_LEFT if self.task.is_removed() else pb.TASK_PHASE_ENDED, self.emitter)

    def user_failed(
        self,
        doing: str,
        error: BaseException,
        remedy: str,
        record: object = None,
        at: FailurePlace | None = None,
        *,
        place: str = "",
    ) -> None:
        """Shows and counts a failure of user code; `at` and `place` are as for `UserErrors.note`.

        Raises:
            ComponentStoppedError: when `topology.on.error` is ``stop``, unless the error has a rule of its own.
            ComponentExitedError: when the error is not an `Exception`, such as that of `sys.exit`.
        """
        if not isinstance(error, Exception):
            raise ComponentExitedError(self.task.errors.report(doing, error, _EXITS, record, place=place)) from error
        stops = self._stops_on_error
        if isinstance(error, FailedRecordError):
            stops = FailedRecordError.ends_task(error, stops)
        if stops:
            raise ComponentStoppedError(self.task.errors.report(doing, error, _STOPS, record, place=place)) from error
        self.task.errors.note(doing, error, remedy, record, at, place=place)

    def _component_reported(self, error: Exception) -> None:
        if FailedRecordError.ends_task(error, self._stops_on_error):
            raise error  # the author's call ends by it
        self.user_failed("the component", error, "the task continues")

    def apply_routes(self) -> None:
        """Makes the output streams of the present plan; subclasses extend it."""
        self.emitter.set_streams(self.task.out_streams(self.emitter.origin))

    def _start(self) -> None:
        self._make_component()
        if (checkpoints := self.task.checkpoints) is not None:
            checkpoints.report_committed()
            if checkpoints.ended:
                self.end()
                return
        self._repeat_markers()
        if self.task.paused:
            self.paused_changed(True)
        self.task.telemetry.report(pb.TASK_PHASE_RUNNING, self.emitter)

    def _make_component(self) -> None:
        self._guarded("the constructor", self._construct)
        self.task.gateway.inspected.component = self.component
        if self.task.checkpoints is not None:
            self._guarded("restoring its state", self._load_state)
        self._guarded("initialize", self._initialise)
        if (checkpoints := self.task.checkpoints) is not None:
            self._guarded("pre_restore", partial(checkpoints.pre_restore, self.component))

    @abstractmethod
    def _construct(self) -> None:
        """Makes the author's object, and sets the targets of the thread-safe collector."""

    def _initialise(self) -> None:
        task, context = self.task, self.task.context
        self.apply_routes()
        initialise(self.component, task.config, context, has_state=task.checkpoints is not None)
        task.errors.locate(self._class, self.component.author_place)
        global_metrics.init(
            context, task.settings.metrics_export_s
        )  # after the author's own call, which takes precedence
        self.emitter.hooks = tuple(context.hooks)
        self.specialise()

    def _guarded(self, doing: str, action: Callable[[], None]) -> None:
        try:
            action()
        except BaseException as error:
            line = self.task.errors.report(doing, error, "correct it and run the topology again")
            raise ComponentStartError(line) from error

    def _take_plan(self, plan: PhysicalPlan) -> None:
        """Goes on under a newer plan, or restores the component if the plan orders it."""
        checkpoints = self.task.checkpoints
        if plan.precedes(self.task.index.plan):
            return
        orders = plan.checkpoints_of(self.task.spec.component) if checkpoints is not None else None
        if checkpoints is None or orders is None:
            self._switch_to(plan)
        elif (restored := checkpoints.is_restore(orders)) and not self._survives(plan):
            self._restore(plan)
        else:
            if restored:
                checkpoints.keep(orders)
                self.ended = checkpoints.ended
            self._switch_to(plan)
            checkpoints.set_plan(orders)
            if restored:
                self._continue_restored()
            self._follow_checkpoints(checkpoints)

    def _switch_to(self, plan: PhysicalPlan) -> None:
        """The component goes on with the routes, the tasks and the configuration of a plan."""
        self.emitter.flush()  # the rows carry the version of the plan under which they were emitted
        before, config, paused = self.task.index, self.task.config, self.task.paused
        routes_changed = self.task.take_plan(plan)
        self.emitter.origin.plan_version = plan.version
        self.emitter.put = _outlet(self.task)
        configured = config != self.task.config
        if configured:
            self._config_changed()
        if not (self.ended or self.task.is_removed()):
            self._update_component(before, configured=configured)
        if routes_changed:
            self.apply_routes()
            if not self.ended:
                self.specialise()
        self._repeat_markers()
        if paused != self.task.paused and not self.ended:
            self.paused_changed(self.task.paused)

    def _flush_state(self) -> None:
        try:
            self.task.keyed.flush_if_many()
        except KeyedStateError as error:
            remedy = "the task restarts, and goes on from the last checkpoint if the topology takes any"
            raise ComponentStoppedError(self.task.errors.report("keeping keyed state", error, remedy)) from error

    def _continue_saving(self, checkpoints: TaskCheckpoints) -> None:
        """Encodes a slice of the state; a task whose output waits for room has time for all slices."""
        more, gateway = checkpoints.advance(), self.task.gateway
        while more and not gateway.data_out.has_room():
            more = checkpoints.advance()
        if more:
            gateway.data_in.sleeper.nudge()

    def _follow_checkpoints(self, checkpoints: TaskCheckpoints) -> None:
        """Commits what is complete; spouts also save what is ordered."""
        try:
            checkpoints.commit(self.component)
        except BaseException as error:
            line = self.task.errors.report("post_save", error, "the task restarts, and commits again")
            raise ComponentStoppedError(line) from error

    def _restore(self, plan: PhysicalPlan) -> None:
        """Constructs the component again, with the state of the checkpoint that the plan names.

        What the task has emitted since is of an older plan, so its receivers drop it.
        """
        self._close_component()
        self.emitter.flush()  # under the former plan
        self.ended = False
        self.task.restart(plan)
        self.emitter.origin.plan_version = plan.version
        self.emitter.put = _outlet(self.task)
        self._reset()
        self._start()

    def _survives(self, plan: PhysicalPlan) -> bool:  # spouts ask
        """Whether the component goes on through the restore that a plan orders, with the state that it has."""
        return False

    def _continue_restored(self) -> None:
        """Reports to the topology manager that the component has survived a restore."""
        if self.ended:
            self.end()
        else:
            self.task.telemetry.report(pb.TASK_PHASE_RUNNING, self.emitter)

    def _leave(self, plan: PhysicalPlan) -> None:
        """An update has removed this task. A two-phase component discards what it has written since the checkpoint.

        The rest of the topology goes on from that checkpoint, so another task writes the same. The component is
        restored under its last plan, because `pre_restore` may expect one that has processed nothing.
        """
        if self._has_left or plan.precedes(self.task.index.plan):
            return
        discards = self._discards_output()
        self._has_left = self.ended = True  # what is still in the queue is not processed
        if discards:
            self._close_component()
            self.task.restart(replace(self.task.index.plan, checkpoints=plan.checkpoints))
            try:
                self._make_component()
            except ComponentStartError:
                _log.warning("task %d leaves output that belongs to no checkpoint", self.task.spec.task_id)

    def _discards_output(self) -> bool:
        return self.task.checkpoints is not None and isinstance(self.component, ITwoPhaseStatefulComponent)

    def _await_removal(self) -> None:
        """Waits until a task that an update removes has left: the executor may be faster than the stream manager."""
        data_in, update = self.task.gateway.data_in, self.task.index.plan.update
        removed = update is not None and self.task.spec.task_id in update.removed
        deadline_s = monotonic_s() + _REMOVED_WITHIN_S
        while removed and self._discards_output() and not self._has_left and monotonic_s() < deadline_s:
            item = data_in.get()
            if isinstance(item, PlanReceived) and not self.task.is_member_of(item.plan):
                self._leave(item.plan)
            elif item is None:
                data_in.wait(deadline_s - monotonic_s())

    @abstractmethod
    def _reset(self) -> None:
        """Forgets everything that belongs to the former component and its input."""

    def _load_state(self) -> None:
        checkpoints = self.task.checkpoints
        assert checkpoints is not None  # noqa: S101  # both callers have checked it
        checkpoints.restore(self.task.index, self.component)

    def _mark_checkpoint(self, number: int) -> None:
        """Sends the marker of a checkpoint; tasks that an update still prepares take no part."""
        self.emitter.send_marker(Marker.CHECKPOINT, self.task.index.former_tasks(self._downstream()), number)

    def _repeat_markers(self) -> None:
        """Sends the markers that the present plan asks for; the receivers ignore those that they have."""
        if self.ended:
            self.emitter.send_marker(Marker.END, self._downstream())
        update, index = self.task.index.plan.update, self.task.index
        if update is not None and update.phase is UpdatePhase.SWITCH:
            self.emitter.send_marker(Marker.PLAN, index.former_tasks(self._downstream()), update.number)

    def _config_changed(self) -> None:  # noqa: B027  # spouts have settings that take effect at once
        """Called when a plan has other values in the component's configuration."""

    def _update_component(self, before: PlanIndex, *, configured: bool) -> None:
        """Calls `update` of a component that follows changes of its configuration, its tasks and their consumers."""
        name, index = self.task.spec.component, self.task.index
        followed = (name, *(each.name for each in index.plan.topology.components if _sends(name, each)))
        changed = configured or any(before.tasks_of(each) != index.tasks_of(each) for each in followed)
        if changed and isinstance(self.component, IUpdatable):
            try:
                self.component.update(self.task.context)
            except BaseException as error:
                self.user_failed("update", error, "the task continues with the new plan")

    def paused_changed(self, paused: bool) -> None:  # noqa: B027  # bolts ignore it
        """Called when the topology is paused or resumed, and when the component starts in a paused topology."""

    def _rest(self) -> None:
        self.apply_routes()
        self.end()

    def _stop_requested(self) -> bool:
        return self._signals.stop_requested

    def _downstream(self) -> tuple[int, ...]:
        return self.task.index.downstream_tasks(self.task.spec.component)

    def _receivers(self) -> tuple[int, ...]:
        """The tasks that get watermarks: all downstream tasks that data is routed to."""
        return self.task.index.receiving_tasks(self.task.spec.component)

    def _queued_failed(self, error: BaseException, place: str) -> None:
        doing, remedy = "a call of the thread-safe collector", "the call is lost and the task continues"
        self.user_failed(doing, error, remedy, place=place)

    def _close(self) -> None:
        self.emitter.flush()
        self._close_component()
        self.task.telemetry.publish(self.emitter, final=True)

    def _close_component(self) -> None:
        self.task.metrics.backlog = None
        for doing, action in (("close", self.component.close), *(("clean_up", h.clean_up) for h in self.emitter.hooks)):
            try:
                action()
            except BaseException as error:
                self.task.errors.report(doing, error, "the task ends anyway")

    @property
    def debug(self) -> bool:
        """Whether `topology.debug` asks for plain code instead of the generated one."""
        return bool(self.task.config.get(TOPOLOGY_DEBUG))


def _outlet(task: Task) -> Callable[[Sequence[bytes]], None]:
    """What a task emits before the restore that an update prepares it for, it emits again after it."""
    return _discard if task.is_restored_first() else task.gateway.data_out.put


def _discard(segments: Sequence[bytes]) -> None:
    """Nobody gets them."""


def _sends(component: str, consumer: ComponentDefinition) -> bool:
    return any(each.component == component for each in consumer.inputs)


def rest_s(task: Task) -> float:
    """Seconds that a task without work may sleep: commands, data, queued calls and signals end its sleep."""
    until_metrics_s = task.telemetry.wait_s(monotonic_s())
    return min(_LOOK_S, until_metrics_s) if task.gateway.machine.has_foreign_threads() else until_metrics_s
