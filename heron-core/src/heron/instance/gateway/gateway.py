"""The gateway thread: owns every socket of an instance and never calls user code.

The gateway works per batch, so that the threads do not compete for the interpreter lock at each tuple. It continues
while user code blocks: a slow task is not a dead one. When its stream manager goes away, the gateway waits
for the next one on a new socket.
"""

from __future__ import annotations

import itertools
import logging
import os
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from heron.clock import SystemClock, monotonic_s
from heron.driver_kit.signals import Signals
from heron.errors import HeronError, RemoteProtocolError, Violation
from heron.instance.gateway.lock_interval import LockInterval
from heron.instance.gateway.session import Session
from heron.instance.inspection.inspection import Inspection, open_installed
from heron.instance.pacing import Linger
from heron.instance.queues.data_queue import (
    DataIn,
    DataOut,
    FramesRefused,
    LettersAsked,
    PlanReceived,
    ReportSeen,
    SessionOpened,
    Sleeper,
)
from heron.instance.queues.flow_limits import SpoutThrottle
from heron.instance.stacks.debuggers import AttachedDebugger
from heron.instance.stacks.engine_wait import engine_wait, main_thread_frame
from heron.instance.stacks.long_calls import LongCalls, look_period_s
from heron.ipc import control_pb2 as pb
from heron.ipc.endpoint import instance_endpoint, metricsmgr_endpoint, registration_endpoint
from heron.ipc.envelope import Envelope, body_of, control_frame, parse_control
from heron.ipc.frames.frame import WIRE_VERSION
from heron.ipc.frames.frame_limits import FrameLimits
from heron.ipc.frames.metrics_codec import publish_message
from heron.ipc.machine import REAL_MACHINE, Machine
from heron.ipc.reactor import BusyPeriods, Reactor, Timer
from heron.ipc.socket import Channel, SocketContext
from heron.ipc.violations import Violations
from heron.kernel.queue_capacity import QueueCapacity
from heron.kernel.role_spec import InstanceSpec
from heron.kernel.settings import EngineSettings
from heron.spi.inspected_task import InspectedTask, TaskIdentity
from heron.spi.metricsink import MetricsRecord
from heron.state_nodes.plans import decode_physical_plan

if TYPE_CHECKING:  # a task imports it at the first question
    from heron.spi.inspector import TaskInspector

__all__ = ["Gateway"]

_log = logging.getLogger(__name__)

_FRAMES_A_ROUND = 16


class Gateway:
    """Owns the sockets and the queues of one instance; its thread runs from `start` to `close`."""

    def __init__(
        self,
        spec: InstanceSpec,
        settings: EngineSettings,
        open_inspector: Callable[[], TaskInspector] = open_installed,
        machine: Machine = REAL_MACHINE,
    ) -> None:
        self._spec = spec
        self._open_inspector = open_inspector
        self._settings = settings
        self.machine = machine
        self._wakeup = machine.wakeup()
        least_bytes, target_s = settings.queue_least_bytes, settings.queue_target_s
        in_capacity = QueueCapacity(least_bytes, settings.link_window_bytes, target_s)
        self.data_in = DataIn(self._wakeup, in_capacity, Sleeper(machine.lock()))
        out_capacity = QueueCapacity(least_bytes, settings.out_queue_bytes, target_s)
        self._limits = FrameLimits(settings.frame_max_bytes)
        self.data_out = DataOut(self._wakeup, self.data_in.sleeper, out_capacity, self._limits)
        self.throttle = SpoutThrottle(SystemClock())
        self.linger = Linger(settings.linger_s)
        self.metrics_out: list[MetricsRecord] = []
        self.inspected = InspectedTask(_identity(spec), spec.driver_secrets, engine_wait=engine_wait)
        self.rounds = 0
        """Task thread: counts its rounds, so that the gateway sees calls that do not return."""
        self.violations = Violations(_log)
        self.debugger = AttachedDebugger()
        self._session: Session | None = None
        self._last: Session | None = None
        self._channel: Channel | None = None
        self._attempts = itertools.count(1)
        self._closing: threading.Lock | None = None
        self._moved_bytes = 0  # that had come and were consumed at the end of the last round
        self._linger_timer: Timer | None = None
        self._delay: Timer | None = None

    def start(self, signals: Signals | None = None) -> None:
        """Starts the thread; a signal ends the sleep of the task thread, which then looks whether it has to stop."""
        self._signals = signals
        self.machine.start_thread("gateway", self._run)

    def publish(self, record: MetricsRecord) -> None:
        """Task thread: sends a record to the metrics manager."""
        self.metrics_out.append(record)
        self._wakeup.wake()

    def close(self, timeout_s: float) -> None:
        """Task thread: sends everything that needs no more credit, and ends the gateway thread."""
        closing = self.machine.lock()
        closing.acquire()  # until the gateway thread releases it
        self._closing = closing
        self._wakeup.asleep = True
        self._wakeup.wake()
        closing.acquire(timeout=timeout_s)

    def _run(self) -> None:
        try:
            self._serve()
        except Exception:
            # Without its gateway the task would wait forever; the executor restarts the process and reports it.
            _log.critical("the gateway thread failed; the process ends", exc_info=True)
            logging.shutdown()
            os._exit(1)

    def _serve(self) -> None:
        run_dir, container_id = Path(self._spec.run_dir), self._spec.container_id
        self._lock_interval = LockInterval()
        self._reactor = Reactor(machine=self.machine)
        self.inspected.gateway_thread = threading.get_ident()
        self._inspection = Inspection(self.inspected, self._reactor, self._send_control, self._open_inspector)
        self._sockets = SocketContext(max_frame_bytes=self._limits.socket_bytes, machine=self.machine)
        self._registration = self._sockets.client_of(registration_endpoint(run_dir, container_id), eager=False)
        self._metrics = self._sockets.push_to(metricsmgr_endpoint(run_dir, container_id))
        self._reactor.on_readable(self._registration, self._read_registration)
        # A hello in each until a stream manager answers: it may still be starting, or be restarting.
        looks = (self._send_hello, lambda: self._lock_interval.adapt(self._reactor.late_s))
        self._periods = BusyPeriods(
            self._reactor, looks, lambda: self._session is not None and self._lock_interval.is_least
        )
        self._reactor.on_readable(self._wakeup.fd, self._wakeup.drain)
        if self._settings.long_call_s > 0:
            self._long_calls = LongCalls(self._settings.long_call_s)
            self._reactor.every(look_period_s(self._settings.long_call_s), self._look_for_long_call)
        if (signals := self._signals) is not None:
            self._reactor.on_readable(signals.fileno(), partial(_wake, self.data_in, signals))
        self._reactor.at_round_end(self._end_round)
        self._wait_for_session()
        self._periods.begin_if_due()
        self._reactor.run()
        self._lock_interval.restore()
        self._inspection.close()
        self._sockets.close(linger_s=0.5)
        if self._closing is not None:
            self._closing.release()

    def _wait_for_session(self) -> None:
        if self._channel is not None:
            self._reactor.forget(self._channel)
            self._channel.close()
        spec = self._spec
        self._endpoint = instance_endpoint(
            Path(spec.run_dir), spec.container_id, spec.task_id, spec.incarnation, next(self._attempts)
        )
        self._session = None
        self.throttle.begin()
        channel = self._channel = self._sockets.channel_bound(self._endpoint)
        self._reactor.on_readable(channel, self._read)
        self._reactor.on_disconnect(channel, self._wait_for_session)
        self._send_hello()

    def _send_hello(self) -> None:
        if self._session is None:
            hello = pb.InstanceHello(
                task_id=self._spec.task_id,
                incarnation=self._spec.incarnation,
                endpoint=self._endpoint,
                pid=os.getpid(),
                wire_version=WIRE_VERSION,
            )
            self._registration.send(control_frame(Envelope(instance_hello=hello)))

    def _read_registration(self) -> None:
        while (frame := self._registration.receive()) is not None:
            try:
                envelope = parse_control(frame)
            except RemoteProtocolError as error:
                self.violations.note("registration", error.violation, f"on the registration socket: {error}")
                continue
            if body_of(envelope) == "refused" and envelope.refused.HasField("frames"):
                self._session_refused(envelope.refused)
            elif body_of(envelope) == "refused":
                _log.error("the stream manager refused the registration: %s", envelope.refused.reason)

    def _session_refused(self, refused: pb.Refused) -> None:
        """Reports a violation as both sides see it. The stream manager has closed the session's socket."""
        last = self._last
        if last is not None and last.number == refused.frames.session:
            lost = last.lost(refused.frames.taken)
            reason = f"the stream manager ended session {last.number}: {refused.reason}; {lost}"
            _log.error("%s", reason)
            self.data_in.put(FramesRefused(reason, lost.rows))

    def _read(self) -> None:
        channel = self._channel
        try:
            for _ in range(_FRAMES_A_ROUND):
                frame = channel.receive() if channel is not None and channel is self._channel else None
                if frame is None:
                    return
                if self._session is None:
                    self._open(parse_control(frame))
                elif (control := self._session.handle(frame, self.data_in)) is not None:
                    self._handle(parse_control(control))
        except RemoteProtocolError as error:
            self.violations.note("stream-manager", error.violation, f"session ended: {error}")
            if self._session is not None:
                frames = pb.RefusedFrames(session=self._session.number, taken=self._session.taken)
                self._registration.send(control_frame(Envelope(refused=pb.Refused(reason=str(error), frames=frames))))
            self._wait_for_session()

    def _open(self, envelope: Envelope) -> None:
        if body_of(envelope) != "instance_welcome":
            msg = f"{body_of(envelope)} before the welcome"
            raise RemoteProtocolError(msg, Violation.SESSION)
        welcome = envelope.instance_welcome
        self._session = self._last = Session(welcome.session, welcome.window_bytes, self.data_in, self._limits)
        self.throttle.begin(welcome.culprits)
        self.data_in.put(SessionOpened(welcome.ended))

    def _handle(self, envelope: Envelope) -> None:
        handlers: dict[str, Callable[[Envelope], None]] = {
            "plan": lambda each: self.data_in.put(PlanReceived(decode_physical_plan(each.plan.document, "the wire"))),
            "pressure": self._pressure_changed,
            "task_report_seen": lambda each: self.data_in.put(ReportSeen(each.task_report_seen.phase)),
            "letters_request": lambda each: self.data_in.put(_letters_asked(each.letters_request)),
            "stack_request": self._inspection.stack_asked,
            "profile_request": self._inspection.profile_asked,
            "memory_request": self._inspection.memory_asked,
            "tuples_request": self._inspection.tuples_asked,
            "capture_request": self._inspection.capture_asked,
        }
        handler = handlers.get(body_of(envelope))
        if handler is None:
            msg = f"{body_of(envelope)} from the stream manager"
            raise RemoteProtocolError(msg, Violation.KIND)
        try:
            handler(envelope)
        except HeronError as error:
            raise RemoteProtocolError(str(error)) from error

    def _look_for_long_call(self) -> None:
        found = self._long_calls.look(self.rounds, lambda: self.debugger.see(main_thread_frame()), monotonic_s())
        if found is not None:
            spec = self._spec
            if found.on and not found.repeated:
                _log.warning("task %s/%d %s", spec.component, spec.task_id, found.text())
            report = pb.LongCall(
                task_id=spec.task_id,
                incarnation=spec.incarnation,
                on=found.on,
                function=found.function,
                place=found.place,
                lasts_s=found.lasts_s,
            )
            self._send_control(Envelope(long_call=report))

    def _pressure_changed(self, envelope: Envelope) -> None:
        self.throttle.change(envelope.pressure.task_id, on=envelope.pressure.on)
        self.data_in.sleeper.nudge()

    def _send_control(self, envelope: Envelope) -> None:
        if self._session is not None and self._channel is not None:
            self._session.send_control(self._channel, envelope)

    def _end_linger(self) -> None:
        """The linger after a flush, which `_end_round` began, is over: the next emit flushes (`Emitter.end_linger`)."""
        self._linger_timer = None
        self.data_out.end_linger()

    def _continue_when_allowed(self) -> None:
        """Runs a round when the output limit allows the next frame: the limit raises no event."""
        limit = self.data_out.limit
        wait_s = limit.wait_s() if limit is not None else None
        if wait_s is not None and self._delay is None:
            self._delay = self._reactor.after(wait_s, self._end_delay)

    def _end_delay(self) -> None:
        self._delay = None

    def _end_round(self) -> None:
        """Asks to be woken from now on, then sends everything that may be sent."""
        self._wakeup.asleep = True
        if self._session is not None and self._channel is not None:
            now_s = monotonic_s()
            self.data_in.adapt(now_s)
            self._session.send_credit(self._channel, self.data_in)
            sent = self._session.pump(self._channel, self.data_out)
            if sent and self._linger_timer is None:
                linger_s = self._lock_interval.linger_s(self.linger.at(now_s))
                self._linger_timer = self._reactor.after(linger_s, self._end_linger)
            self._continue_when_allowed()
            self.data_out.adapt(now_s)
            moved_bytes = self.data_in.received_bytes + self.data_in.consumed_bytes
            if sent or moved_bytes != self._moved_bytes:
                self._moved_bytes = moved_bytes
                self._periods.note()
        self._periods.begin_if_due()
        while self.metrics_out:
            record = self.metrics_out.pop(0)
            self._metrics.send(control_frame(Envelope(metrics_publish=publish_message(record))))
        if self._closing is not None:
            self._reactor.stop()


def _identity(spec: InstanceSpec) -> TaskIdentity:
    return TaskIdentity(spec.topology, spec.component, spec.task_id, spec.container_id, spec.incarnation)


def _letters_asked(request: pb.LettersRequest) -> LettersAsked:
    return LettersAsked(request.request_id, frozenset(request.ids), request.drop)


def _wake(data_in: DataIn, signals: Signals) -> None:
    """Wakes the task thread, the main one, for the handler of a signal: to stop, or one of the author's."""
    signals.drain()
    data_in.sleeper.nudge()
