"""The session with one incarnation of one local instance."""

from __future__ import annotations

from heron.errors import RemoteProtocolError
from heron.ipc import control_pb2 as pb
from heron.ipc.credit import CreditGrant
from heron.ipc.envelope import Envelope, control_frame
from heron.ipc.frame import FRAME_HEADER_BYTES, FrameKind, credit_body, frame_header, parse_credit, parse_frame_header
from heron.ipc.lane import ReceiveLane, SendLane
from heron.ipc.socket import Channel
from heron.stmgr.counters import Counters
from heron.stmgr.link_host import JOIN_BYTES
from heron.stmgr.outlet import Outlet
from heron.stmgr.router import Router

__all__ = ["InstanceLink"]


class InstanceLink:
    """Reads the instance's segments into the router, and writes its outlet to it."""

    def __init__(self, hello: pb.InstanceHello, channel: Channel, session: int) -> None:
        self.task_id = hello.task_id
        self.incarnation = hello.incarnation
        self.endpoint = hello.endpoint
        self.channel = channel
        self._grant = CreditGrant()
        self.held_back = False
        """While true, nothing that this instance sends gives it credit: it is a spout under back pressure."""
        self._outgoing = SendLane(session)
        self._incoming = ReceiveLane(session)

    @property
    def session(self) -> int:
        """The number of this session."""
        return self._outgoing.session

    def release(self, size_bytes: int) -> None:
        """`heron.stmgr.outlet.Releasable`."""
        self._grant.release(size_bytes)

    def send_control(self, envelope: Envelope) -> None:
        """Sends a control message."""
        self.channel.send(control_frame(envelope, self._outgoing.session))

    def handle(self, frame: bytes, router: Router, counters: Counters) -> bytes | None:
        """Takes one frame; returns it when it is a control frame, for the caller to read.

        Raises:
            RemoteProtocolError: when the frame breaks the rules; the session must end.
        """
        kind, session, sequence = parse_frame_header(frame)
        if session != self.session:
            msg = f"frame of session {session} in session {self.session}"
            raise RemoteProtocolError(msg)
        if kind == FrameKind.CONTROL:
            return frame
        if kind == FrameKind.CREDIT:
            outlet = router.outlets.get(self.task_id)
            if outlet is not None and outlet.window is not None:
                outlet.window.release(parse_credit(frame)[1])
                router.touched.add(self.task_id)
            return None
        if kind not in (FrameKind.DATA, FrameKind.ACK):
            msg = f"frame of kind {kind} from an instance"
            raise RemoteProtocolError(msg)
        counters.lost_frames += self._incoming.accept(session, sequence)
        if kind == FrameKind.ACK:
            counters.ack_bytes += len(frame)
            router.route_acks(frame)
            return None
        self._grant.receive(len(frame) - FRAME_HEADER_BYTES)
        counters.frames_from_instances += 1
        counters.bytes_from_instances += len(frame)
        router.route(frame, self)
        return None

    def send_acks(self, segments: list[bytes]) -> None:
        """Tells the task what became of its roots; needs no credit."""
        self.channel.send(b"".join((self._outgoing.header(FrameKind.ACK), *segments)))

    def pump(self, outlet: Outlet) -> int:
        """Sends what credit lets through; returns how many bytes."""
        sent_bytes = 0
        head = outlet.ready()
        while head is not None:
            parts = [self._outgoing.header(FrameKind.DATA)]
            size = 0
            while head is not None and (size == 0 or size + len(head) <= JOIN_BYTES):
                parts.append(outlet.pop(len(head)))  # type: ignore[arg-type]  # join takes any buffer
                size += len(head)
                head = outlet.ready()
            self.channel.send(b"".join(parts))
            sent_bytes += size
        return sent_bytes

    def send_credit(self) -> None:
        """Tells the instance what was released since the last time, if anything."""
        released = None if self.held_back else self._grant.due()
        if released is not None:
            header = frame_header(FrameKind.CREDIT, self._outgoing.session, 0)
            self.channel.send(header + credit_body(0, released))
