"""The process of a stream manager: connects router, links, plan and metrics on one event loop."""

from __future__ import annotations

import logging
import socket
from collections import Counter
from collections.abc import Mapping

from heron.api.api_constants import TOPOLOGY_DROPTUPLES_UPON_BACKPRESSURE
from heron.api.config import setting
from heron.clock import monotonic_s, wall_s
from heron.errors import RemoteProtocolError, StateError
from heron.ipc import control_pb2 as pb
from heron.ipc.documents.metric_names import LATE_S
from heron.ipc.endpoint import executor_endpoint, metricsmgr_endpoint
from heron.ipc.envelope import Envelope, body_of, control_frame
from heron.ipc.frames.metrics_codec import publish_message
from heron.ipc.locator import TManagerChannel
from heron.ipc.process_metrics import connection_metrics, cpu_wait_metrics, process_metrics
from heron.ipc.reactor import BusyPeriods
from heron.ipc.task_question import TASK_REQUESTS
from heron.kernel.process_keys import ProcessKeys
from heron.kernel.role_spec import StmgrSpec
from heron.planner.physical_plan import CheckpointPlan, HandledLosses, PhysicalPlan, PlanIndex
from heron.spi.metricsink import Metric, MetricKind, MetricsRecord, Source
from heron.state_nodes.plans import decode_physical_plan
from heron.stmgr.back_pressure import Culprits, Reporter
from heron.stmgr.counters import TimerLateness
from heron.stmgr.event_buffer import EventBuffer
from heron.stmgr.instance_links import InstanceLinks
from heron.stmgr.link_context import LinkContext
from heron.stmgr.outlet import Outlet
from heron.stmgr.peer_hub import PeerHub
from heron.stmgr.peer_links import PeerLinks
from heron.stmgr.pressure_reports import PressureReports
from heron.stmgr.question_relay import QuestionRelay
from heron.stmgr.stmgr_metrics import ack_metrics, reach_metrics, routing_metrics

__all__ = ["StreamManager"]

_log = logging.getLogger(__name__)


class StreamManager:
    """Routes between the instances of a container and the other stream managers."""

    def __init__(self, context: LinkContext) -> None:
        self._context = context
        self.plan: PhysicalPlan | None = None  # by which it routes
        self.outlets: Mapping[int, Outlet] = context.router.outlets  # what waits for each task, by id
        self._stmgrs: dict[int, int] = {}
        self._culprits = Culprits()
        self._lateness = TimerLateness()
        self._events = EventBuffer(context.spec.container_id)
        self._losses = 0
        self._restores = 0
        self._reported_losses: Counter[int] = Counter()  # by task; 0 if it is not one task
        self._leaving: list[pb.TaskReport] = []
        self._instances = InstanceLinks(
            context, self._forward_report, self._task_lost, self._forward, self._losses_are_handled
        )
        self._peer_hub = PeerHub(context)
        self._peers = PeerLinks(context)
        spec, reactor = context.spec, context.reactor
        self._metrics = context.sockets.push_to(metricsmgr_endpoint(context.run_dir, spec.container_id))
        self._tmanager = TManagerChannel(
            reactor,
            context.sockets,
            executor_endpoint(context.run_dir, spec.container_id),
            keys=ProcessKeys(spec, context.read_spec, self._take_keys),
            process="stmgr",
            on_connect=self._send_hello,
            on_envelope=self._handle,
        )
        self._questions = QuestionRelay(self._instances, self._tmanager)
        self._pressure = PressureReports(
            context, self._culprits, self._instances, self._peers, self._tmanager, self._events
        )
        reactor.every(context.settings.heartbeat_s, self._each_heartbeat)
        reactor.every(context.settings.metrics_export_s, self._publish)
        self._periods = BusyPeriods(  # no root can expire, and no outlet has a pace: nothing is due without an event
            reactor, (self._check_due,), lambda: context.paces.rest and not context.acks.in_flight()
        )
        reactor.at_round_end(self._end_round)

    def _end_round(self) -> None:
        """Sends the segments that this round has gathered, and then the credit that sending them has released."""
        router = self._context.router
        self._fail_after_losses()
        changed = router.take_changed()
        if changed:
            self._periods.note()
            self._peers.pump({task_id for task_id in changed if not self._instances.pump(task_id)})
        router.release_held()
        congested = router.culprits_after(changed)
        if congested != self._culprits.present():
            self._pressure.update(congested)
        for each in self._context.pressure.take_changes():
            self._instances.throttle(each)
        self._instances.send_credits()
        self._peer_hub.send_credits()
        self._send_acks()
        self._report_left()
        self._periods.begin_if_due()

    def _fail_after_losses(self) -> None:
        """Fails all roots after a loss: any tree may have lost a tuple, and its replay must not wait for a timeout."""
        counters = self._context.counters
        losses = counters.lost_frames + counters.broken_links + self._context.router.unroutable_segments
        if losses > self._losses:
            self._losses = losses
            self._context.acks.fail_all("data under way")
            self._peers.send_loss(0)
            self._report_loss(0)

    def _send_acks(self) -> None:
        for task_id, segments in self._context.acks.take_remote().items():
            if not self._peers.send_acks(task_id, segments):
                self._context.counters.lost_acks += len(segments)  # the stream manager with the roots is gone
        for task_id, segments in self._context.acks.take_settled().items():
            self._instances.send_acks(task_id, segments)

    def _send_hello(self) -> None:
        spec = self._context.spec
        (server_key, endpoint), *following = self._peer_hub.endpoints.items()
        next_server_key, next_endpoint = following[0] if following else ("", "")
        hello = pb.StmgrHello(
            container_id=spec.container_id,
            incarnation=spec.incarnation,
            endpoint=endpoint,
            host=socket.gethostname(),
            pid=self._context.reactor.machine.pid(),
            tasks=[each for each in self._instances.reports.all() if each not in self._leaving],
            losses=self._reported_losses.total(),
            lost_by_task=self._reported_losses,
            server_key=server_key,
            next_endpoint=next_endpoint,
            next_server_key=next_server_key,
        )
        self._tmanager.send(Envelope(stmgr_hello=hello))
        self._pressure.repeat()

    def _take_keys(self, spec: StmgrSpec) -> None:
        """The keys rotate: listens and connects with the sets that the executor has written now."""
        self._peer_hub.set_keys(spec.peer_keys)
        self._peers.moves.follow(spec.keys)
        _log.info("sets of keys: %d", len(spec.keys))
        self._send_hello()

    def _check_due(self) -> None:
        now_s, context = monotonic_s(), self._context
        context.acks.expire()
        self._lateness.fired(now_s, self._periods.due_s)
        if self.plan is not None and self.plan.checkpoints is not None:
            context.paces.adapt(context.router.outlets.values(), now_s)

    def _send_heartbeat(self) -> None:
        spec = self._context.spec
        heartbeat = pb.Heartbeat(
            container_id=spec.container_id,
            incarnation=spec.incarnation,
            losses=self._reported_losses.total(),
            lost_by_task=self._reported_losses,
            server_keys=self._peer_hub.endpoints,
            moved=self._peers.moves.are_over(),
        )
        self._tmanager.send(Envelope(heartbeat=heartbeat))

    def _each_heartbeat(self) -> None:
        self._send_heartbeat()
        self._peer_hub.send_heartbeats()
        self._peers.moves.follow()
        for change in self._peers.reach.update(monotonic_s()):
            what = "is reached again after" if change.reached else "is not reached: no message for"
            _log.warning("the stream manager of container %d %s %.1f s", change.container_id, what, change.silent_s)
            self._events.reach_changed(change)
        self._pressure.report_causes()

    def _handle(self, envelope: Envelope) -> None:
        body = body_of(envelope)
        if body == "plan":
            self._take_plan(envelope)
        elif body == "task_report_seen":
            self._instances.send(envelope.task_report_seen.task_id, envelope)
        elif body in TASK_REQUESTS:
            self._questions.ask(envelope)
        elif body == "refused":
            _log.error("refused by the topology manager: %s", envelope.refused.reason)

    def _take_plan(self, envelope: Envelope) -> None:
        try:
            plan = decode_physical_plan(envelope.plan.document, "plan from the topology manager")
        except StateError as error:
            raise RemoteProtocolError(str(error)) from error
        if self.plan is not None and plan.precedes(self.plan):
            return
        index, self.plan = PlanIndex(plan), plan
        self._forget_stmgrs(index)
        self._context.local.set_plan(index)
        self._context.acks.set_plan(index.plan)
        if plan.checkpoints is not None:
            self._follow_restores(plan.checkpoints)
        self._context.router.set_tasks(index.tasks)
        self._context.router.drops = bool(setting(index.plan.topology.config, TOPOLOGY_DROPTUPLES_UPON_BACKPRESSURE))
        self._context.pressure.set_plan(index, throttles=not self._context.router.drops)
        self._peers.set_plan(index)
        self._peer_hub.set_plan(index.containers)
        self._instances.send_plan(envelope)
        _log.info("physical plan %d: %d tasks", plan.version, len(index.tasks))

    def _follow_restores(self, orders: CheckpointPlan) -> None:
        """Data from before a restore is dropped, so the trees that need it cannot complete."""
        restores = orders.all_restores()
        if restores > self._restores:
            self._context.acks.fail_all("what came after the newest checkpoint")
        self._restores = restores
        self._context.router.valid_since = orders.since

    def _forget_stmgrs(self, index: PlanIndex) -> None:
        """Fails all roots for each stream manager that was replaced: any tree may have had tuples there.

        A container that is not in the plan any more has sent and processed everything before.
        """
        stmgrs = {container_id: each.incarnation for container_id, each in index.containers.items()}
        left = [Reporter(*each) for each in self._stmgrs.items() if stmgrs.get(each[0]) != each[1]]
        self._stmgrs = stmgrs
        for each in left:
            if each.container_id in stmgrs:
                self._context.acks.fail_all(f"stream manager {each.container_id}")
            self._context.pressure.forget(each)

    def _task_lost(self, task_id: int) -> None:
        self._questions.task_lost(task_id)
        self._context.acks.local_task_lost(task_id)
        self._peers.send_loss(task_id)
        self._report_loss(task_id)

    def _report_loss(self, task_id: int) -> None:
        """Reports a loss at once to a topology manager that restores; hello and heartbeats repeat it."""
        self._reported_losses[task_id] += 1
        if self.plan is not None and self.plan.checkpoints is not None:
            self._send_heartbeat()

    def _losses_are_handled(self) -> bool:
        """Whether the plan was made with the knowledge of every loss here.

        A task that starts under an older plan does not know which checkpoint of its former incarnation is complete: it
        would discard output that has to be committed.
        """
        orders, spec = self.plan.checkpoints if self.plan is not None else None, self._context.spec
        handled = HandledLosses(spec.container_id, spec.incarnation, self._reported_losses.total())
        return orders is None or handled in orders.losses

    def _forward(self, envelope: Envelope) -> None:
        self._questions.forward(envelope)

    def _forward_report(self, report: pb.TaskReport) -> None:
        if report.phase == pb.TASK_PHASE_LEFT:
            self._leaving.append(report)
        else:
            self._tmanager.send(Envelope(task_report=report))

    def _report_left(self) -> None:
        """Reports the tasks that have left.

        This process ends with the last task of its container, so the peers must have all data before. Only the plan
        says whether the container leaves.
        """
        if not self._leaving or self.plan is None:
            return
        if not self._context.local.container_leaves() or self._peers.have_everything():
            reports, self._leaving = self._leaving, []
            for report in reports:
                self._tmanager.send(Envelope(task_report=report))

    def _publish(self) -> None:
        context = self._context
        spec = context.spec
        metrics = [
            *routing_metrics(context.router, context.counters, self._culprits, monotonic_s()),
            *ack_metrics(context.acks.counters(), context.acks.in_flight()),
            *reach_metrics(self._peers.reach.silent_s(monotonic_s())),
            *connection_metrics(self._peer_hub.refused()),
            *self._tmanager.metrics(),
            *context.refusals.metrics(),
            Metric(LATE_S, MetricKind.COUNTER, "s", self._lateness.total_s),
            *cpu_wait_metrics(),
        ]
        record = MetricsRecord(
            Source(spec.topology, spec.container_id, "stmgr", spec.incarnation),
            wall_s(),
            (*metrics, *process_metrics()),
            self._events.take(context.violations),
        )
        self._metrics.send(control_frame(Envelope(metrics_publish=publish_message(record))))
