"""The process of an executor: connects children, restarts, the orderly stop and the link to the topology manager."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from heron.clock import monotonic_s
from heron.driver_kit.parent_process import END_NOTE, EXIT_TEMPORARY
from heron.driver_kit.process_starter import ProcessStarter
from heron.driver_kit.signals import EXIT_TERMINATED
from heron.errors import HeronError
from heron.executor.child_outputs import ChildOutputs
from heron.executor.children import ChildEnd, Children
from heron.executor.container_keys import ContainerKeys
from heron.executor.container_processes import ContainerProcess, instance_process, output_file, role_spec
from heron.executor.container_stop import ContainerStop
from heron.executor.key_changes import KeyChanges
from heron.executor.kill_causes import KillCauses
from heron.executor.location_server import LocationServer
from heron.executor.process_restarts import ProcessPhase, ProcessRestarts, ProcessState, RestartPolicy
from heron.executor.task_packages import TaskPackages
from heron.executor.workspace import Workspace
from heron.ipc import control_pb2 as pb
from heron.ipc.endpoint import executor_endpoint, metricsmgr_endpoint
from heron.ipc.envelope import Envelope, body_of
from heron.ipc.locator import TManagerChannel
from heron.ipc.reactor import Reactor
from heron.ipc.socket import SocketContext
from heron.kernel.observer_threads import Hooks
from heron.kernel.own_cgroup import OwnCgroup
from heron.kernel.role_spec import incarnation, write_spec
from heron.kernel.settings import EngineSettings
from heron.kernel.telemetry import Telemetry
from heron.planner.packing_plan import InstancePlan
from heron.spi.metricsink import Source
from heron.spi.scheduler import ContainerSpec
from heron.spi.statemgr import StateManager
from heron.state_nodes.plans import decode_tasks

__all__ = ["EXIT_ENDED", "Executor", "ExecutorContext", "RoleCommand"]

EXIT_ENDED = 0
"""The container has ended and must not be started again."""

RoleCommand = Callable[[str, Path], Sequence[str]]
"""Returns the command line for a module (``heron.stmgr.main``) and its spec file."""

_PHASES = {
    ProcessPhase.RUNNING: pb.PROCESS_PHASE_STARTED,
    ProcessPhase.WAITING: pb.PROCESS_PHASE_DIED,
    ProcessPhase.GIVEN_UP: pb.PROCESS_PHASE_GIVEN_UP,
}

# These roles start when the topology manager is connected, or after this time. A start costs processor time that the
# other processes need. Records wait in the sockets of their senders meanwhile, and services have nothing to do.
_LAST_TO_START = frozenset({"metricsmgr", "service"})
_LAST_STARTS_S = 0.5

_KILLS_LOOK_S = 5.0  # a kill for memory explains the end of a child for 10 s

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ExecutorContext:
    """The parts that an executor is built on; their owner closes them."""

    spec: ContainerSpec
    keys: ContainerKeys
    settings: EngineSettings
    reactor: Reactor
    sockets: SocketContext
    statemgr: StateManager
    workspace: Workspace
    hooks: Hooks
    starter: ProcessStarter
    packages: TaskPackages


class Executor:
    """Runs the processes of one container until it must stop; then it sets `exit_code` and stops the reactor."""

    def __init__(self, context: ExecutorContext, processes: Sequence[ContainerProcess], command: RoleCommand) -> None:
        self._context = context
        self._processes = {process.name: process for process in processes}
        self._command = command
        self._leaving: dict[str, ContainerProcess] = {}
        self._loaded: dict[str, str] = {}  # the package of each task that has started
        self._kills = KillCauses(OwnCgroup(context.reactor.machine.root), monotonic_s)
        outputs = ChildOutputs(context.reactor, context.settings.output_max_bytes)
        self._children = Children(self._kills.cause, context.starter, outputs)
        self._key_changes = KeyChanges(
            context.reactor,
            context.keys,
            self._processes,
            self._children,
            context.settings.stop_grace_s,
            self._write_spec,
        )
        services = frozenset(name for name, process in self._processes.items() if process.service)
        self._restarts = ProcessRestarts(self._processes, RestartPolicy.of(context.settings), never_given_up=services)
        self._stopping: ContainerStop | None = None
        self._last_started = False
        self.exit_code: int | None = None
        spec, reactor = context.spec, context.reactor
        run_dir = context.workspace.run_dir
        endpoint = executor_endpoint(run_dir, spec.container_id)
        self._locations = LocationServer(reactor, context.sockets, endpoint, spec.topology_id)
        # The executor asks its own location server, as its children do: so there is only one check of epochs.
        self._tmanager = TManagerChannel(
            reactor,
            context.sockets,
            endpoint,
            keys=context.keys,
            process="executor",
            on_connect=self._send_hello,
            on_envelope=self._handle,
        )
        self._telemetry = Telemetry(
            context.sockets.push_to(metricsmgr_endpoint(run_dir, spec.container_id)),
            Source(spec.topology, spec.container_id, "executor", incarnation(spec.attempt, 0)),
        )
        reactor.every(_KILLS_LOOK_S, self._kills.look)
        reactor.every(context.settings.metrics_export_s, self._publish)

    def start(self) -> None:
        """Starts every process.

        Raises:
            StateError: when the state manager cannot watch the location of the topology manager.
        """
        spec = self._context.spec
        for name, process in self._processes.items():
            if process.role not in _LAST_TO_START:
                self._start(name)
        # While they start: a driver may take long to watch, and they wait for the location anyway.
        follow_keys = partial(self._key_changes.follow, topology=spec.topology, on_written=self._locations.set_keys)
        self._locations.watch(self._context.statemgr, spec.topology, follow_keys)
        self._context.reactor.after(_LAST_STARTS_S, self._start_last)
        self._telemetry.events.note("container-started", f"container-{spec.container_id}", attempt=str(spec.attempt))
        self._context.hooks.notify(
            "heron_container_started", topology=spec.topology, container_id=spec.container_id, attempt=spec.attempt
        )

    def take_ended(self) -> None:
        """Handles SIGCHLD: reaps the children that have ended."""
        for end in self._children.reap():
            if self._leaving.pop(end.name, None) is not None:
                _log.info("%s has left: %s", end.name, end.reason)
                self._loaded.pop(end.name, None)
                self._context.packages.keep({*map(_package, self._processes.values()), *self._loaded.values()})
            elif self._key_changes.take_renewed(end.name) and self._stopping is None:
                self._restarts.died(end.name, EXIT_TEMPORARY, "its keys have changed", monotonic_s())
                self._start(end.name)
            elif self._stopping is None:
                self._died(end)
            else:
                _log.info("%s has stopped: %s", end.name, end.reason)
        self._continue_stopping()

    def terminate(self) -> None:
        """Handles SIGTERM: stops all processes within the 5 s that an executor has."""
        self._stop(EXIT_TERMINATED, "SIGTERM")
        if self._stopping is not None:
            self._stopping.hurry(monotonic_s())
            self._continue_stopping()

    def close(self) -> None:
        """Kills the children that are left and closes the state manager, which ends the watch."""
        self._children.kill_all()
        self._context.statemgr.close()
        self._locations.close()

    def _start(self, name: str) -> None:
        if not self._restarts.may_start(name):
            return  # the executor stopped while the process waited
        context, process = self._context, self._processes[name]
        package = _package(process)
        if process.instance and not context.packages.has(package):
            context.packages.fetch(package, partial(self._fetched, name))
            return
        self._loaded[name] = package
        number = self._incarnation(name)
        try:
            spec_file = self._write_spec(name)
            command, output = self._command(process.module, spec_file), output_file(process, context.spec)
            pid = self._children.start(name, command, output, spec_file.with_suffix(END_NOTE))
        except (OSError, HeronError) as error:
            self._died(ChildEnd(name, EXIT_TEMPORARY, str(error)))  # no disk space or memory: temporary
            return
        _log.info("%s started: pid %d, incarnation %d", name, pid, number)
        state = self._restarts.started(name, monotonic_s())
        self._telemetry.events.note("process-started", name, restarts=str(state.restarts))
        self._report(state)

    def _fetched(self, name: str, error: str) -> None:
        """The package of a process is there, or cannot be fetched."""
        if not self._restarts.may_start(name):
            return  # the executor stops, or an update has removed the process
        if error:
            self._died(ChildEnd(name, EXIT_TEMPORARY, error))
        else:
            self._start(name)

    def _write_spec(self, name: str) -> Path:
        context, number, process = self._context, self._incarnation(name), self._processes[name]
        path = context.workspace.path / f"{name}.json"
        task_ids = tuple(each.task_id for each in self._processes.values() if each.instance)
        package_dir = context.workspace.package_dir(_package(process))
        write_spec(path, role_spec(process, context.spec, context.keys.ring, task_ids, number, package_dir))
        return path

    def _start_last(self) -> None:
        if self._last_started:
            return
        self._last_started = True
        for name, process in self._processes.items():
            if process.role in _LAST_TO_START:
                self._start(name)

    def _died(self, end: ChildEnd) -> None:
        spec = self._context.spec
        again = self._restarts.died(end.name, end.code, end.reason, monotonic_s())
        self._report(self._restarts.state(end.name))
        self._telemetry.events.note("process-died", end.name, reason=end.reason)
        self._context.hooks.notify(
            "heron_process_died",
            topology=spec.topology,
            container_id=spec.container_id,
            process=end.name,
            reason=end.reason,
        )
        if again is None:
            _log.error("%s is given up: %s", end.name, end.reason)
            self._telemetry.events.note("process-given-up", end.name, reason=end.reason)
            return
        _log.warning("%s died and is restarted in %.3g s: %s", end.name, again.delay_s, end.reason)
        self._context.reactor.after(again.delay_s, lambda: self._start(end.name))

    def _incarnation(self, name: str) -> int:
        return incarnation(self._context.spec.attempt, self._restarts.restarts(name))

    def _send_hello(self) -> None:
        spec = self._context.spec
        hello = pb.ExecutorHello(
            container_id=spec.container_id, attempt=spec.attempt, pid=os.getpid(), host=os.uname().nodename
        )
        self._tmanager.send(Envelope(executor_hello=hello))
        self._start_last()
        for state in self._restarts.states():
            if state.phase is not ProcessPhase.WAITING or state.reason:
                self._report(state)

    def _report(self, state: ProcessState) -> None:
        phase = _PHASES.get(state.phase)
        if phase is None:
            return  # the topology manager has ordered the stop, and needs no report
        report = pb.ProcessReport(
            container_id=self._context.spec.container_id,
            process=state.process,
            task_id=self._processes[state.process].task_id,
            incarnation=self._incarnation(state.process),
            phase=phase,
            reason=state.reason,
            restarts=state.restarts,
            pid=self._children.pid(state.process),
        )
        self._tmanager.send(Envelope(process_report=report))

    def _publish(self) -> None:
        self._telemetry.publish((*self._tmanager.metrics(), *self._locations.violations.metrics()))

    def _handle(self, envelope: Envelope) -> None:
        if body_of(envelope) == "stop":
            self._stop(EXIT_ENDED, envelope.stop.reason)
            self._tmanager.send(Envelope(done=pb.Done()))  # the leader ends when a standby here has its signal

        elif body_of(envelope) == "container_tasks" and self._stopping is None:
            self._set_tasks(decode_tasks(envelope.container_tasks.document))

    def _set_tasks(self, tasks: Sequence[InstancePlan]) -> None:
        """Starts the tasks that an update has added to this container, and stops those that it has removed.

        A task that stays may have another package, which it gets when it starts again: its code is the same.
        """
        wanted = {process.name: process for process in map(instance_process, tasks)}
        present = {name for name, process in self._processes.items() if process.instance}
        for name in present - wanted.keys():
            self._leaving[name] = self._processes.pop(name)
            self._restarts.remove(name)
            if name in self._children.alive():
                self._children.ask(name)
                self._context.reactor.after(self._context.settings.stop_grace_s, partial(self._kill_leaving, name))
            else:
                del self._leaving[name]
        self._processes |= {name: wanted[name] for name in wanted.keys() & present}
        for name in wanted.keys() - present:
            self._processes[name] = wanted[name]
            self._restarts.add(name)
            self._start(name)

    def _kill_leaving(self, name: str) -> None:
        if name in self._leaving:
            _log.warning("%s did not stop in time, killing it", name)
            self._children.kill(name)

    def _stop(self, code: int, reason: str) -> None:
        if self._stopping is not None:
            return
        _log.info("container %d stops: %s", self._context.spec.container_id, reason)
        self.exit_code = code
        self._restarts.stop()
        self._children.hurry()
        self._telemetry.events.note("container-stopped", f"container-{self._context.spec.container_id}", reason=reason)
        self._telemetry.publish()
        # A standby topology manager stops at once: it must not take over from a leader whose container stops faster.
        first = frozenset(
            name
            for name, process in (*self._processes.items(), *self._leaving.items())
            if process.instance or process.role == "tmanager"
        )
        last = frozenset(name for name, process in self._processes.items() if process.role == "metricsmgr")
        groups = (first, frozenset(self._processes) - first - last, last)
        self._stopping = ContainerStop(groups, self._context.settings.stop_grace_s, monotonic_s())
        self._continue_stopping()

    def _continue_stopping(self) -> None:
        if self._stopping is None:
            return
        now_s = monotonic_s()
        step = self._stopping.step(self._children.alive(), now_s)
        for name in step.ask:
            self._children.ask(name)
        for name in step.kill:
            _log.warning("%s did not stop in time, killing it", name)
            self._children.kill(name)
        if step.done:
            self._context.reactor.stop()
        elif (next_at_s := self._stopping.next_at_s(now_s)) is not None:
            self._context.reactor.after(max(0.0, next_at_s - now_s), self._continue_stopping)


def _package(process: ContainerProcess) -> str:
    """The package of a task; "" is that of the submission, which engine processes do not use."""
    return process.instance.package if process.instance else ""
