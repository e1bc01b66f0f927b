"""The shell of the topology manager: it reads the socket, calls the leader, and carries out its instructions."""

from __future__ import annotations

import functools
import logging
import math
from dataclasses import dataclass

from heron.checkpoints.archive import CheckpointArchive
from heron.checkpoints.manifest import CheckpointManifest
from heron.clock import SystemClock, monotonic_s
from heron.errors import HeronError, RemoteProtocolError, StateConflictError, Violation
from heron.ipc import control_pb2 as pb
from heron.ipc.documents.metric_names import LEADER_EPOCH, TAKEOVERS, TRACE_GAPS
from heron.ipc.envelope import Envelope, body_of, parse_control
from heron.ipc.frames.metrics_codec import record_of
from heron.ipc.guarded_hub import GuardedHub
from heron.ipc.keys import ClientKind
from heron.ipc.process_metrics import connection_metrics
from heron.ipc.reactor import Reactor, Timer
from heron.ipc.task_question import TASK_REQUESTS
from heron.ipc.violations import Violations
from heron.kernel.observer_threads import Hooks
from heron.kernel.settings import EngineSettings
from heron.kernel.telemetry import Telemetry
from heron.spi.metricsink import Metric, MetricKind
from heron.tmanager.command_requests import CommandRequests, Handler
from heron.tmanager.leader.instructions import (
    EndTopology,
    Instruction,
    NoteEvent,
    NotifyHook,
    PublishPlan,
    SendPlan,
    StoreManifest,
)
from heron.tmanager.leader.leader import Leader
from heron.tmanager.leader.topology_state import Takeover
from heron.tmanager.messages import (
    check_permission,
    check_size,
    checkpoint_report,
    location_of,
    long_call_report,
    process_report,
    task_report,
    totals_of,
)
from heron.tmanager.metrics.checkpoint_metrics import checkpoint_metrics
from heron.tmanager.metrics.trace_store import TraceStore
from heron.tmanager.state.containers import Containers
from heron.tmanager.state.manifest_writer import ManifestWriter
from heron.tmanager.state.plan_publisher import PlanPublisher
from heron.tmanager.state.state_store import StateStore
from heron.tmanager.state.topology_end import TopologyEnd
from heron.tmanager.task_relay import TaskRelay

__all__ = ["TopologyManager", "TopologyManagerResources"]

_LEAST_WAIT_S = 0.1  # between two looks for what is due: a checkpoint may be due, and wait for a container or a task
_MESSAGES_A_ROUND = 256  # timers run between two rounds

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TopologyManagerResources:
    """The resources that a topology manager uses."""

    settings: EngineSettings
    reactor: Reactor
    hub: GuardedHub
    store: StateStore
    telemetry: Telemetry
    hooks: Hooks
    archive: CheckpointArchive | None = None


class TopologyManager:
    """The shell of one leader."""

    def __init__(self, host: TopologyManagerResources, takeover: Takeover) -> None:
        self._host = host
        self._refused = 0
        self._violations = Violations(_log)
        self._leader = Leader(takeover, host.settings, SystemClock())
        self._takeover = takeover
        self._containers = Containers(host.hub, takeover.leader.epoch)
        self._plans = PlanPublisher(host.reactor, host.store, self._containers, self._leader.known.plan_waits)
        self._end = TopologyEnd(
            host.reactor, host.store, self._containers, self._leader.known.containers, takeover.leader.container_id
        )
        self._relay = TaskRelay(host.reactor, self._containers, self._leader.known.asked_task)
        self._traces = TraceStore()
        self._timer: Timer | None = None  # of the next look
        self._manifests: ManifestWriter | None = None
        if host.archive is not None:
            kept = host.settings.checkpoints_kept
            self._manifests = ManifestWriter(host.reactor, host.archive, kept, self._manifest_stored)
        requests = CommandRequests(
            self._leader, self._containers, self._traces, self._plans, self._end, self._carry_out
        )
        self._handlers: dict[str, Handler] = {
            "stmgr_hello": self._stmgr_hello,
            "heartbeat": self._heartbeat,
            "task_report": self._task_report,
            "executor_hello": self._executor_hello,
            "process_report": lambda _, each: self._leader.process_reported(process_report(each.process_report)),
            "metrics_publish": self._metrics_publish,
            "pressure": self._pressure,
            "checkpoint_report": lambda _, each: self._leader.checkpoint_reported(
                checkpoint_report(each.checkpoint_report)
            ),
            "long_call": lambda _, each: self._leader.long_call_reported(long_call_report(each.long_call)),
            **requests.handlers(),
            **dict.fromkeys(TASK_REQUESTS, self._relay.asked),
            "task_answer": self._relay.answered,
            "done": self._done,
        }

    def begin(self) -> None:
        """Begins to lead and to answer."""
        self._carry_out(self._leader.begin())
        host = self._host
        host.reactor.on_readable(host.hub, self._read)
        host.reactor.every(host.settings.heartbeat_s, lambda: self._carry_out(self._leader.check_heartbeats()))
        host.reactor.every(host.settings.metrics_export_s, self._publish)
        host.reactor.at_round_end(self._look_when_due)
        self._look_when_due()
        self._publish()  # report the takeover even if this leader ends soon

    def _look_when_due(self) -> None:
        """Looks when the leader has something to do without a message; a timer that is earlier than that stays."""
        now_s, before = monotonic_s(), self._timer
        wait_s = max(_LEAST_WAIT_S, self._leader.due_s() - now_s)
        if wait_s == math.inf or (before is not None and before.due_s <= now_s + wait_s):
            return
        if before is not None:
            before.cancel()
        self._timer = self._host.reactor.after(wait_s, self._look)

    def _look(self) -> None:
        self._timer = None
        self._carry_out(self._leader.check_due())

    def _publish(self) -> None:
        given = self._takeover
        refused_traces = Metric(TRACE_GAPS, MetricKind.COUNTER, "spans", self._traces.refused, {"reason": "refused"})
        own = (
            *((refused_traces,) if self._traces.refused else ()),
            Metric("refused-messages", MetricKind.COUNTER, "messages", self._refused),
            *self._violations.metrics(),
            Metric(LEADER_EPOCH, MetricKind.GAUGE, "epoch", given.leader.epoch),
            Metric(TAKEOVERS, MetricKind.COUNTER, "takeovers", int(given.former_epoch > 0)),
        )
        checkpoints = checkpoint_metrics(self._leader.known.checkpoint_status(), SystemClock().wall_s())
        self._host.telemetry.publish((*own, *checkpoints, *connection_metrics(self._host.hub.gate.refused())))

    def _read(self) -> None:
        for _ in range(_MESSAGES_A_ROUND):
            message = self._host.hub.receive_from()
            if message is None:
                return
            self._handle(*message)

    def _handle(self, identity: bytes, frame: bytes, kind: ClientKind) -> None:
        request_id = 0
        try:
            check_size(kind, len(frame))
            envelope = parse_control(frame)
            body = body_of(envelope)
            request_id = getattr(getattr(envelope, body), "request_id", 0)
            handler = self._handlers.get(body)
            if handler is None:
                msg = f"{body} is not for a topology manager"
                raise RemoteProtocolError(msg, Violation.KIND)
            check_permission(kind, body)
            instructions = handler(identity, envelope)
        except HeronError as error:
            self._refuse(identity, request_id, kind, error)
            if isinstance(error, StateConflictError):
                raise  # another topology manager leads; this one ends
            return
        self._carry_out(instructions)

    def _refuse(self, identity: bytes, request_id: int, kind: ClientKind, error: HeronError) -> None:
        """Counts and answers a message that breaks the protocol, or a request that is not possible now."""
        self._refused += 1
        if isinstance(error, RemoteProtocolError):
            self._violations.note(kind.value, error.violation, f"refused: {error}", level=logging.WARNING)
        else:
            _log.warning("refused: %s", error)
        if request_id or self._violations.may_answer(identity):
            self._containers.answer(identity, Envelope(refused=pb.Refused(request_id=request_id, reason=str(error))))

    def _carry_out(self, instructions: list[Instruction]) -> None:
        for instruction in instructions:
            match instruction:
                case PublishPlan(plan, packing):
                    self._plans.publish(plan, packing)
                case SendPlan(container_id, plan):
                    self._plans.send(container_id, plan)
                case StoreManifest(manifest, keeps_older):
                    self._store_manifest(manifest, keeps_older)
                case EndTopology(report, reason):
                    _log.info("%s %s", reason, report.error)
                    self._end.begin(report, reason)
                    self._host.telemetry.publish()  # the last events; the process ends before the next export
                case NoteEvent(name, subject, attributes):
                    _log.info("%s: %s %s", name, subject, attributes)
                    self._host.telemetry.events.note(name, subject, **attributes)
                case NotifyHook(hook, facts):
                    self._end.when_written(functools.partial(self._host.hooks.notify, hook, **facts))

    def _store_manifest(self, manifest: CheckpointManifest, keeps_older: bool) -> None:
        if self._manifests is None:
            self._carry_out(self._leader.manifest_stored(manifest.number, "the job was submitted without a store"))
        else:
            self._manifests.store(manifest, keeps_older=keeps_older)

    def _manifest_stored(self, number: int, error: str) -> None:
        self._carry_out(self._leader.manifest_stored(number, error))

    def _stmgr_hello(self, identity: bytes, envelope: Envelope) -> list[Instruction]:
        hello = envelope.stmgr_hello
        instructions = self._leader.stmgr_registered(location_of(hello), hello.losses, dict(hello.lost_by_task))
        self._containers.add_stmgr(hello.container_id, identity)
        self._relay.lost(hello.container_id)
        self._carry_out(instructions)
        for report in hello.tasks:
            self._carry_out(self._leader.task_reported(task_report(report), totals_of(report)))
        return []

    def _heartbeat(self, identity: bytes, envelope: Envelope) -> list[Instruction]:
        container_id = self._containers.stmgr_of(identity)
        heartbeat = envelope.heartbeat
        if container_id is None:
            return []
        self._leader.known.keys.take(container_id, tuple(heartbeat.server_keys), moved=heartbeat.moved)
        return self._leader.stmgr_heard(
            container_id, heartbeat.incarnation, heartbeat.losses, dict(heartbeat.lost_by_task)
        )

    def _task_report(self, identity: bytes, envelope: Envelope) -> list[Instruction]:
        report = envelope.task_report
        instructions = self._leader.task_reported(task_report(report), totals_of(report))
        seen = pb.TaskReportSeen(task_id=report.task_id, phase=report.phase)
        self._containers.answer(identity, Envelope(task_report_seen=seen))
        return instructions

    def _executor_hello(self, identity: bytes, envelope: Envelope) -> list[Instruction]:
        hello = envelope.executor_hello
        _log.info("executor of container %d, attempt %d", hello.container_id, hello.attempt)
        self._containers.add_executor(hello.container_id, identity)
        self._leader.executor_registered(hello.container_id, hello.attempt, hello.pid, hello.host)
        self._plans.send_tasks(hello.container_id)
        self._end.connected(hello.container_id)
        return []

    def _metrics_publish(self, _identity: bytes, envelope: Envelope) -> list[Instruction]:
        record = record_of(envelope.metrics_publish)
        self._traces.add(record.spans, monotonic_s())
        self._leader.known.metrics_arrived(record)
        return []

    def _pressure(self, _identity: bytes, envelope: Envelope) -> list[Instruction]:
        pressure = envelope.pressure
        return self._leader.pressure_reported(
            pressure.task_id, pressure.container_id, on=pressure.on, cause=pressure.cause
        )

    def _done(self, identity: bytes, _envelope: Envelope) -> list[Instruction]:
        container_id = self._containers.executor_of(identity)
        if container_id is not None:
            self._end.confirmed(container_id)
        return []
