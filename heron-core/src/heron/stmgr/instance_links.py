"""The links to the local instances: registration, and one session for each incarnation.

An instance binds a new socket for each session and sends its hello to the registration socket; the stream manager
connects to it. So a session is a pair of sockets. When either side ends, no frame of the old session can reach the new
one, and the stream manager can drop one instance that breaks the protocol without affecting the others.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Collection

from heron.errors import HeronError, RemoteProtocolError, Violation
from heron.ipc import control_pb2 as pb
from heron.ipc.endpoint import is_instance_endpoint, registration_endpoint
from heron.ipc.envelope import Envelope, body_of, control_frame, parse_control
from heron.ipc.frames.frame import (
    FRAME_HEADER_BYTES,
    WIRE_VERSION,
    FrameKind,
    credit_body,
    frame_header,
    parse_credit,
    parse_frame_header,
)
from heron.ipc.frames.frame_limits import FrameLimits, divided
from heron.ipc.frames.sent_frames import LostFrames, SentFrames
from heron.ipc.frames.trace_field import stamp_departure
from heron.ipc.link import CreditGrant, ReceiveLane, SendLane
from heron.ipc.socket import Channel
from heron.ipc.violations import violation_of
from heron.stmgr.back_pressure import SpoutChange
from heron.stmgr.counters import TrafficCounters
from heron.stmgr.link_context import FRAMES_A_ROUND, LinkContext
from heron.stmgr.outlet import JOIN_BYTES, Outlet, Segment
from heron.stmgr.router import Router

__all__ = ["InstanceLink", "InstanceLinks", "TaskReports"]

_log = logging.getLogger(__name__)

_PASSED = ("checkpoint_report", "long_call", "task_answer")  # messages of instances to the topology manager


class TaskReports:
    """The newest report of each local task. A task that has ended or left stays so, whatever it reports later."""

    __slots__ = ("_by_task",)

    def __init__(self) -> None:
        self._by_task: dict[int, pb.TaskReport] = {}

    def note(self, report: pb.TaskReport) -> None:
        """Stores a report; a restore starts a task again that has ended."""
        present = self._by_task.get(report.task_id)
        if present is not None and report.restores < present.restores:
            return
        if (
            present is None
            or report.restores > present.restores
            or not (self.ended(report.task_id) or self.left(report.task_id))
        ):
            self._by_task[report.task_id] = report

    def ended(self, task_id: int) -> bool:
        """Whether this task has ended."""
        return self._phase(task_id) == pb.TASK_PHASE_ENDED

    def left(self, task_id: int) -> bool:
        """Whether this task has left, because an update removes it."""
        return self._phase(task_id) == pb.TASK_PHASE_LEFT

    def keep(self, task_ids: Collection[int]) -> None:
        """Forgets the reports of other tasks."""
        self._by_task = {task_id: report for task_id, report in self._by_task.items() if task_id in task_ids}

    def all(self) -> tuple[pb.TaskReport, ...]:
        """The newest report of every task."""
        return tuple(self._by_task.values())

    def _phase(self, task_id: int) -> int:
        report = self._by_task.get(task_id)
        return report.phase if report is not None else pb.TASK_PHASE_UNSPECIFIED


class InstanceLink:
    """The session with one incarnation of one instance: reads frames into the router, and sends the task's outlet."""

    def __init__(self, hello: pb.InstanceHello, channel: Channel, session: int, limits: FrameLimits) -> None:
        self.task_id = hello.task_id
        self.incarnation = hello.incarnation
        self.endpoint = hello.endpoint
        self.channel = channel
        self.throttled = False
        """Whether the instance is a spout under back pressure; it gets no credit meanwhile."""
        self.has_plan = False
        self._grant = CreditGrant()
        self._outgoing = SendLane(session)
        self._incoming = ReceiveLane(session)
        self._limits = limits
        self._sent = SentFrames()

    @property
    def session(self) -> int:
        """The number of this session."""
        return self._outgoing.session

    @property
    def taken(self) -> int:
        """The number of data and ack frames that have arrived and keep the protocol."""
        return self._incoming.taken

    def lost(self, taken: int) -> LostFrames:
        """What is lost when the instance refuses this session after `taken` frames."""
        return self._sent.lost(taken, self._limits.data_bytes)

    def release(self, size_bytes: int) -> None:
        """`heron.stmgr.outlet.Producer`."""
        self._grant.release(size_bytes)

    def send_control(self, envelope: Envelope) -> None:
        """Sends a control message."""
        self.channel.send(control_frame(envelope, self._outgoing.session))

    def handle(self, frame: bytes, router: Router, counters: TrafficCounters) -> bytes | None:
        """Handles one frame; returns a control frame unread, for the caller to handle.

        Raises:
            RemoteProtocolError: when the frame breaks the protocol; the session must end.
        """
        kind, session, sequence = parse_frame_header(frame)
        self._limits.check(kind, len(frame))
        if session != self.session:
            msg = f"frame of session {session} in session {self.session}"
            raise RemoteProtocolError(msg, Violation.SESSION)
        if kind == FrameKind.CONTROL:
            return frame
        if kind == FrameKind.CREDIT:
            self._sent.confirm(sequence)
            router.credit_arrived(self.task_id, parse_credit(frame)[1])
            return None
        counters.lost_frames += self._incoming.accept(session, sequence)
        try:
            self._route(kind, frame, router, counters)
        except RemoteProtocolError:
            self._incoming.take_back()
            raise
        return None

    def _route(self, kind: int, frame: bytes, router: Router, counters: TrafficCounters) -> None:
        if kind == FrameKind.ACK:
            counters.ack_bytes += len(frame)
            router.route_acks(frame)
            return
        self._grant.receive(len(frame) - FRAME_HEADER_BYTES)
        counters.frames_from_instances += 1
        counters.bytes_from_instances += len(frame)
        router.route(frame, self)

    def send_acks(self, segments: list[bytes]) -> None:
        """Sends the outcomes of the task's roots; they need no credit."""
        for part, _ in divided(segments, self._limits.data_bytes):
            self.channel.send(b"".join((self._outgoing.header(FrameKind.ACK), *part)))

    def pump(self, outlet: Outlet) -> int:
        """Sends the segments that credit allows; returns the number of bytes."""
        sent_bytes = 0
        head = outlet.ready()
        while head is not None:
            parts: list[Segment] = []
            size = 0
            while head is not None and (size == 0 or size + len(head) <= JOIN_BYTES):
                parts.append(outlet.pop(len(head)))
                size += len(head)
                head = outlet.ready()
            flags = stamp_departure(parts)
            self.channel.send(b"".join((self._outgoing.header(FrameKind.DATA, flags), *parts)))
            self._sent.note(self._outgoing.sequence, FRAME_HEADER_BYTES + size, parts)
            sent_bytes += size
        return sent_bytes

    def send_credit(self) -> None:
        """Sends the credit that was released since the last call, if any."""
        released = None if self.throttled else self._grant.due()
        if released is not None:
            header = frame_header(FrameKind.CREDIT, self._outgoing.session, self.taken)
            self.channel.send(header + credit_body(0, released))


class InstanceLinks:
    """All local instances of a stream manager."""

    def __init__(
        self,
        context: LinkContext,
        on_report: Callable[[pb.TaskReport], None],
        on_lost: Callable[[int], None],
        on_passed: Callable[[Envelope], None],
        may_start: Callable[[], bool] = lambda: True,
    ) -> None:
        """Calls `on_report` with each task report, `on_lost` with the id of each task whose session ends, and
        `on_passed` with each message for the topology manager. A new session gets no plan while `may_start` is false.
        """
        self._may_start = may_start
        self.reports = TaskReports()
        self._context = context
        self._on_report = on_report
        self._on_lost = on_lost
        self._on_passed = on_passed
        self._links: dict[int, InstanceLink] = {}
        self._newest: dict[bytes, InstanceLink] = {}  # by identity on the registration socket, also after their end
        self._limits = context.limits
        self._sessions = itertools.count(1)
        self._plan: Envelope | None = None
        self._hub = context.sockets.hub(registration_endpoint(context.run_dir, context.spec.container_id))
        context.reactor.on_readable(self._hub, self._read_hub)

    def send_plan(self, plan: Envelope) -> None:
        """Sends the physical plan to every instance in it, now or when it registers.

        A task that was in the plan before gets it too: so it learns that it has left. Its executor ends it.
        """
        self._plan = plan
        self.reports.keep(self._context.local.ids)
        for link in self._links.values():
            if link.task_id in self._context.local.ids:
                self._send_plan_to(link)
            elif link.has_plan:
                link.send_control(plan)

    def send(self, task_id: int, envelope: Envelope) -> bool:
        """Sends a control message to one instance; False when it is not registered."""
        link = self._links.get(task_id)
        if link is not None:
            link.send_control(envelope)
        return link is not None

    def waits_for(self, task_id: int) -> tuple[int, ...]:
        """The tasks whose full outlets stop a local task from sending."""
        link = self._links.get(task_id)
        return self._context.router.waits_for(link) if link is not None else ()

    def throttle(self, change: SpoutChange) -> None:
        """Applies a change of back pressure to a spout and reports it to the spout."""
        link = self._links.get(change.task_id)
        if link is not None:
            link.throttled = bool(self._context.pressure.culprits_of(change.task_id))
            container_id = self._context.spec.container_id
            pressure = pb.Pressure(task_id=change.culprit, container_id=container_id, on=change.on)
            link.send_control(Envelope(pressure=pressure))

    def pump(self, task_id: int) -> bool:
        """Sends the outlet of a local task; False when the task is not local."""
        link = self._links.get(task_id)
        if link is None:
            return task_id in self._context.local.ids
        outlet = self._context.router.outlets.get(task_id)
        if outlet is not None:
            self._context.counters.bytes_to_instances += link.pump(outlet)
        return True

    def send_acks(self, task_id: int, segments: list[bytes]) -> None:
        """Sends the outcomes of its roots to a local task, if it is registered."""
        link = self._links.get(task_id)
        if link is not None:
            link.send_acks(segments)

    def send_credits(self) -> None:
        """Sends the credit of this round to every instance."""
        for link in self._links.values():
            link.send_credit()

    def _read_hub(self) -> None:
        for _ in range(FRAMES_A_ROUND):
            message = self._hub.receive()
            if message is None:
                return
            identity, frame = message
            try:
                envelope = parse_control(frame)
                if body_of(envelope) == "refused":
                    self._refused(identity, envelope.refused)
                else:
                    self._register(identity, envelope)
            except HeronError as error:
                self._context.counters.refused_frames += 1
                context, kind = self._context, violation_of(error)
                context.refusals.note("registration", kind, f"registration refused: {error}", level=logging.WARNING)
                if context.refusals.may_answer(identity):
                    self._hub.send(identity, control_frame(Envelope(refused=pb.Refused(reason=str(error)))))

    def _refused(self, identity: bytes, refused: pb.Refused) -> None:
        """Reports a frame that an instance has refused, as both sides see it. The instance has closed the session."""
        link = self._newest.get(identity)
        if link is not None and link.session == refused.frames.session:
            lost = link.lost(refused.frames.taken)
            self._context.counters.lost_tuples += lost.rows
            message = f"task {link.task_id} ended its session: {refused.reason}; {lost}"
            self._context.note_violation("to-instance", RemoteProtocolError(message, Violation.CONTENT), message)

    def _register(self, identity: bytes, envelope: Envelope) -> None:
        if body_of(envelope) != "instance_hello":
            msg = f"{body_of(envelope)} on the registration socket"
            raise RemoteProtocolError(msg, Violation.KIND)
        hello = envelope.instance_hello
        if hello.wire_version != WIRE_VERSION:
            msg = f"task {hello.task_id} has wire version {hello.wire_version}, this stream manager has {WIRE_VERSION}"
            raise RemoteProtocolError(msg, Violation.VERSION)
        tasks = self._context.local.ids
        if hello.task_id not in tasks:
            listed = ", ".join(map(str, sorted(tasks)))
            container_id = self._context.spec.container_id
            msg = f"task {hello.task_id} is not in container {container_id}, which has tasks {listed}"
            raise RemoteProtocolError(msg, Violation.SESSION)
        if not is_instance_endpoint(hello.endpoint, self._context.run_dir, self._context.spec.container_id):
            msg = f"task {hello.task_id} waits at {hello.endpoint!r:.200}, which is no socket of this container"
            raise RemoteProtocolError(msg)
        present = self._links.get(hello.task_id)
        if present is not None and hello.incarnation < present.incarnation:
            msg = f"task {hello.task_id}: incarnation {hello.incarnation} after {present.incarnation}"
            raise RemoteProtocolError(msg, Violation.SESSION)
        if present is not None and hello.endpoint == present.endpoint:
            return  # repeated before the welcome arrived
        if present is not None:
            self._drop(present)
        self._newest = {key: link for key, link in self._newest.items() if link.task_id != hello.task_id}
        self._newest[identity] = self._open(hello)

    def _open(self, hello: pb.InstanceHello) -> InstanceLink:
        context = self._context
        channel = context.sockets.channel_to(hello.endpoint)
        link = InstanceLink(hello, channel, next(self._sessions), self._limits)
        self._links[hello.task_id] = link
        context.reactor.on_readable(channel, lambda: self._read(link))
        context.reactor.on_disconnect(channel, lambda: self._drop(link))
        window_bytes = context.settings.link_window_bytes
        culprits = context.pressure.culprits_of(hello.task_id)
        link.throttled = bool(culprits)
        link.send_control(
            Envelope(
                instance_welcome=pb.InstanceWelcome(
                    session=link.session,
                    window_bytes=window_bytes,
                    grant_bytes=window_bytes,
                    ended=self.reports.ended(hello.task_id),
                    culprits=culprits,
                )
            )
        )
        _log.info("task %d registered, incarnation %d", hello.task_id, hello.incarnation)
        if self._plan is not None:
            self._send_plan_to(link)
        return link

    def _send_plan_to(self, link: InstanceLink) -> None:
        assert self._plan is not None  # noqa: S101  # both callers have checked it
        if not (link.has_plan or self._may_start()):
            return
        link.has_plan = True
        link.send_control(self._plan)
        self._context.router.open_outlet(link.task_id, self._context.settings.link_window_bytes)

    def _read(self, link: InstanceLink) -> None:
        try:
            for _ in range(FRAMES_A_ROUND):
                frame = link.channel.receive()
                if frame is None:
                    return
                control = link.handle(frame, self._context.router, self._context.counters)
                if control is not None:
                    self._handle_control(parse_control(control))
        except RemoteProtocolError as error:
            message = (
                f"session of task {link.task_id} ended, the task broke the protocol in frame {link.taken + 1}: {error}"
            )
            self._context.note_violation("from-instance", error, message)
            self._refuse(link, str(error))
            self._drop(link)

    def _refuse(self, link: InstanceLink, reason: str) -> None:
        """Answers on the registration socket: the socket of the session is closed, and drops what it has not sent."""
        refused = pb.Refused(reason=reason, frames=pb.RefusedFrames(session=link.session, taken=link.taken))
        for identity, each in self._newest.items():
            if each is link:
                self._hub.send(identity, control_frame(Envelope(refused=refused)))

    def _handle_control(self, envelope: Envelope) -> None:
        if body_of(envelope) in _PASSED:
            self._on_passed(envelope)
            return
        if body_of(envelope) != "task_report":
            msg = f"{body_of(envelope)} from an instance"
            raise RemoteProtocolError(msg, Violation.KIND)
        self.reports.note(envelope.task_report)
        self._on_report(envelope.task_report)

    def _drop(self, link: InstanceLink) -> None:
        router = self._context.router
        if self._links.get(link.task_id) is link:
            del self._links[link.task_id]
            outlet = router.outlets.get(link.task_id)
            if outlet is not None:
                outlet.close()
            _log.info("session of task %d ended", link.task_id)
            if link.task_id in self._context.local.ids and not self.reports.left(link.task_id):
                self._on_lost(link.task_id)
        router.forget(link)
        self._context.reactor.forget(link.channel)
        link.channel.close()
