"""The sessions with one peer: `PeerOutbound` sends to the peer's tasks, `PeerInbound` receives from the peer."""

from __future__ import annotations

from collections.abc import Iterable

from heron.errors import RemoteProtocolError, Violation
from heron.ipc import control_pb2 as pb
from heron.ipc.envelope import Envelope, body_of, control_frame, parse_control
from heron.ipc.frames.frame import (
    FRAME_HEADER_BYTES,
    WIRE_VERSION,
    FrameKind,
    credit_body,
    frame_header,
    parse_credit,
    parse_frame_header,
    retargeted,
)
from heron.ipc.frames.frame_limits import FrameLimits, divided
from heron.ipc.frames.sent_frames import LostFrames, SentFrames
from heron.ipc.frames.trace_field import TRACED, is_traced, stamp_departure
from heron.ipc.link import CreditGrant, ReceiveLane, SendLane
from heron.ipc.socket import Channel, Hub
from heron.planner.physical_plan import StreamManagerLocation
from heron.stmgr.counters import TrafficCounters
from heron.stmgr.outlet import JOIN_BYTES, Outlet, Producer, Segment
from heron.stmgr.router import Router

__all__ = ["PeerInbound", "PeerOutbound", "next_segments"]


class PeerOutbound:
    """One session to one incarnation of a peer: sends hello, waits for the welcome, then sends the outlets."""

    def __init__(
        self, location: StreamManagerLocation, channel: Channel, server_key: str, session: int, limits: FrameLimits
    ) -> None:
        """`server_key` is the public key of the server at the endpoint of the channel. Frames wait for the hello."""
        self.location = location
        self.server_key = server_key
        self.ended = False
        """Whether the peer has taken every frame of this session, which has ended (`end`)."""
        self.lost: LostFrames | None = None
        """What is lost, after the peer has refused a frame of this session."""
        self._limits = limits
        self._sent = SentFrames()
        self.channel = channel
        self.task_ids: tuple[int, ...] = ()
        self._own: frozenset[int] = frozenset()
        self.loss_sent = False
        self._lane = SendLane(session)
        self._window_bytes: int | None = None
        self._early: list[bytes] | None = []

    @property
    def frames(self) -> int:
        """The number of data and ack frames that were sent in this session."""
        return self._lane.sequence

    @property
    def welcomed(self) -> bool:
        """Whether the peer has answered the hello."""
        return self._window_bytes is not None

    def send_hello(self, container_id: int, incarnation: int, frames_before: int) -> None:
        """Opens the session; `frames_before` is the number of frames that earlier sessions sent."""
        hello = pb.PeerHello(
            container_id=container_id,
            incarnation=incarnation,
            session=self._lane.session,
            wire_version=WIRE_VERSION,
            frames_before=frames_before,
        )
        self.channel.send(control_frame(Envelope(peer_hello=hello)))
        early, self._early = self._early or [], None
        for frame in early:
            self.channel.send(frame)

    def send_pressure(self, pressure: pb.Pressure) -> None:
        """Reports that a task became a culprit, or stopped being one."""
        self._send(control_frame(Envelope(pressure=pressure)))

    def set_tasks(self, task_ids: tuple[int, ...], router: Router) -> None:
        """Applies the peer's tasks of a new plan and opens the outlets of new tasks."""
        self.task_ids, self._own = task_ids, frozenset(task_ids)
        if self._window_bytes is not None:
            self._open_outlets(router, self._window_bytes)

    def close(self, router: Router) -> bool:
        """Ends the session; queued segments wait for the next one. Returns whether data was under way."""
        outlets = [router.outlets[task_id] for task_id in self.task_ids if task_id in router.outlets]
        under_way = any(each.window and each.window.sent_bytes > each.window.released_bytes for each in outlets)
        for outlet in outlets:
            outlet.close()
        self.channel.close()
        return under_way

    def end(self, router: Router) -> None:
        """Ends the session when the peer has taken its frames: it answers. Queued segments wait for the next one."""
        for task_id in self._own & router.outlets.keys():
            router.outlets[task_id].close()
        self._own = frozenset()
        self.channel.send(control_frame(Envelope(peer_end=pb.PeerEnd(session=self._lane.session))))

    def handle(self, frame: bytes, router: Router) -> None:
        """Handles a welcome or credit from the peer.

        Raises:
            RemoteProtocolError: when the frame breaks the protocol, or the peer refuses the session.
        """
        kind, session, sequence = parse_frame_header(frame)
        self._limits.check(kind, len(frame))
        if kind == FrameKind.CONTROL:
            self._handle_welcome(parse_control(frame), router)
            return
        if kind != FrameKind.CREDIT:
            msg = f"frame of kind {kind} from a peer that gets data"
            raise RemoteProtocolError(msg, Violation.KIND)
        if session != self._lane.session:
            msg = f"credit of session {session} in session {self._lane.session}"
            raise RemoteProtocolError(msg, Violation.SESSION)
        self._sent.confirm(sequence)
        task_id, released_bytes = parse_credit(frame)
        if task_id in self._own:  # else a task that has left the peer with a newer plan
            router.credit_arrived(task_id, released_bytes)

    def send_acks(self, segments: list[bytes]) -> None:
        """Sends segments about roots of the peer's tasks; they need no credit and no welcome."""
        for part, _ in divided(segments, self._limits.data_bytes):
            self._send(b"".join((self._lane.header(FrameKind.ACK), *part)))

    def send_loss(self, loss: pb.Loss) -> None:
        """Reports that something was lost."""
        self.loss_sent = True
        self._send(control_frame(Envelope(loss=loss), self._lane.session))

    def pump(self, router: Router) -> int:
        """Sends the segments that credit allows; returns the number of bytes."""
        sent_bytes = 0
        outlets = [router.outlets[task_id] for task_id in self.task_ids if task_id in router.outlets]
        while segments := next_segments(outlets, JOIN_BYTES):
            flags = TRACED if any(map(is_traced, segments)) else 0
            frame = b"".join((self._lane.header(FrameKind.DATA, flags), *segments))
            self.channel.send(frame)
            self._sent.note(self._lane.sequence, len(frame), segments)
            sent_bytes += len(frame)
        return sent_bytes

    def _handle_welcome(self, envelope: Envelope, router: Router) -> None:
        if body_of(envelope) == "refused":
            msg = f"container {self.location.container_id} refuses the session: {envelope.refused.reason}"
            if envelope.refused.HasField("frames") and envelope.refused.frames.session == self._lane.session:
                self.lost = self._sent.lost(envelope.refused.frames.taken, self._limits.data_bytes)
                msg = f"{msg}; {self.lost}"
            raise RemoteProtocolError(msg)
        if body_of(envelope) == "peer_end":
            self.ended = True
            return
        welcome = envelope.peer_welcome
        if body_of(envelope) not in ("peer_welcome", "heartbeat"):
            msg = f"{body_of(envelope)} from a peer that gets data"
            raise RemoteProtocolError(msg, Violation.KIND)
        if body_of(envelope) == "heartbeat" or welcome.session != self._lane.session:
            return  # the caller has noted that the peer lives; or the answer to an earlier hello
        self._window_bytes = welcome.window_bytes
        self._open_outlets(router, welcome.window_bytes)

    def _send(self, frame: bytes) -> None:
        if self._early is None:
            self.channel.send(frame)
        else:
            self._early.append(frame)

    def _open_outlets(self, router: Router, window_bytes: int) -> None:
        for task_id in self.task_ids:
            router.open_outlet(task_id, window_bytes)


def next_segments(outlets: Iterable[Outlet], limit_bytes: int) -> list[Segment]:
    """Takes the segments that credit allows now: at least one, if any, and then up to `limit_bytes`.

    A segment for several tasks of a peer is in the outlet of each, because each task has its own credit and order.
    Where it is the first of several outlets, it is sent once for all of them. So an `all` grouping crosses a link once
    as long as its tasks keep pace.
    """
    taken: list[Segment] = []
    size_bytes = 0
    candidates = list(outlets)
    while candidates and size_bytes < limit_bytes:
        heads: dict[int, tuple[Segment, list[Outlet]]] = {}
        for outlet in candidates:
            head = outlet.ready()
            if head is not None:
                heads.setdefault(id(head), (head, []))[1].append(outlet)
        candidates = []
        for head, owners in heads.values():
            if taken and size_bytes + len(head) > limit_bytes:
                continue
            stamp_departure((head,))
            sent = retargeted(head, [outlet.task_id for outlet in owners])
            for outlet in owners:
                outlet.pop(len(sent))
            taken.append(sent)
            size_bytes += len(sent)
            candidates.extend(owners)
    return taken


class _PeerProducer:
    """The producer for one peer's data to one task; adds the task to `released` when credit is due."""

    __slots__ = ("_released", "_task_id", "grant")

    def __init__(self, task_id: int, released: set[int]) -> None:
        self._task_id = task_id
        self._released = released
        self.grant = CreditGrant()

    def release(self, size_bytes: int) -> None:
        self.grant.release(size_bytes)
        self._released.add(self._task_id)


class PeerInbound:
    """One session from one incarnation of a peer; credit is counted for each destination task."""

    def __init__(self, hello: pb.PeerHello, identity: bytes, limits: FrameLimits) -> None:
        self._frames_before = hello.frames_before
        self._limits = limits
        self.container_id = hello.container_id
        self.incarnation = hello.incarnation
        self.identity = identity
        self.session = hello.session
        self._lane = ReceiveLane(hello.session)
        self._producers: dict[int, _PeerProducer] = {}
        self._released: set[int] = set()

    @property
    def frames(self) -> int:
        """The number of frames of this incarnation that arrived or are known as lost, in all of its sessions."""
        return self._frames_before + self._lane.taken

    @property
    def taken(self) -> int:
        """The number of frames of this session that arrived and keep the protocol, or are known as lost."""
        return self._lane.taken

    def receive(self, task_id: int, size_bytes: int) -> Producer:
        """`heron.stmgr.router.PeerProducers`."""
        producer = self._producers.get(task_id)
        if producer is None:
            producer = self._producers[task_id] = _PeerProducer(task_id, self._released)
        producer.grant.receive(size_bytes)
        return producer

    def producers(self) -> tuple[Producer, ...]:
        """Every producer of this session."""
        return tuple(self._producers.values())

    def handle(self, frame: bytes, router: Router, counters: TrafficCounters) -> None:
        """Routes a data or ack frame.

        Raises:
            RemoteProtocolError: when the frame breaks the protocol; the session must end.
        """
        kind, session, sequence = parse_frame_header(frame)
        self._limits.check(kind, len(frame))
        counters.lost_frames += self._lane.accept(session, sequence)
        try:
            self._route(kind, frame, router, counters)
        except RemoteProtocolError:
            self._lane.take_back()
            raise

    def _route(self, kind: int, frame: bytes, router: Router, counters: TrafficCounters) -> None:
        if kind == FrameKind.ACK:
            counters.ack_bytes += len(frame)
            router.route_acks(frame)
            return
        counters.frames_from_peers += 1
        counters.bytes_from_peers += len(frame) - FRAME_HEADER_BYTES
        router.route_from_peer(frame, self)

    def send_credits(self, hub: Hub) -> None:
        """Sends the credit that was released since the last call, for each task."""
        while self._released:
            task_id = self._released.pop()
            released = self._producers[task_id].grant.due()
            if released is not None:
                header = frame_header(FrameKind.CREDIT, self.session, self.taken)
                hub.send(self.identity, header + credit_body(task_id, released))
