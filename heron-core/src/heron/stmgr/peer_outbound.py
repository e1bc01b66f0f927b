"""What this stream manager sends to one incarnation of a peer."""

from __future__ import annotations

from heron.errors import RemoteProtocolError
from heron.ipc import control_pb2 as pb
from heron.ipc.envelope import Envelope, body_of, control_frame, parse_control
from heron.ipc.frame import WIRE_VERSION, FrameKind, parse_credit, parse_frame_header
from heron.ipc.lane import SendLane
from heron.ipc.socket import Channel
from heron.planner.physical_plan import StreamManagerLocation
from heron.stmgr.link_host import JOIN_BYTES
from heron.stmgr.peer_outlets import next_segments
from heron.stmgr.router import Router

__all__ = ["PeerOutbound"]


class PeerOutbound:
    """Says hello, waits for the welcome, then sends what waits for the peer's tasks."""

    def __init__(self, location: StreamManagerLocation, channel: Channel, session: int) -> None:
        self.location = location
        self.channel = channel
        self.task_ids: tuple[int, ...] = ()
        self._lane = SendLane(session)
        self._window_bytes: int | None = None
        self.told_loss = False

    @property
    def frames(self) -> int:
        """How many data and ack frames were sent in this session."""
        return self._lane.sequence

    @property
    def welcomed(self) -> bool:
        """Whether the peer has answered."""
        return self._window_bytes is not None

    def say_hello(self, container_id: int, incarnation: int, frames_before: int) -> None:
        """Opens the session from this side; so many frames went in earlier ones."""
        hello = pb.PeerHello(
            container_id=container_id,
            incarnation=incarnation,
            session=self._lane.session,
            wire_version=WIRE_VERSION,
            frames_before=frames_before,
        )
        self.channel.send(control_frame(Envelope(peer_hello=hello)))

    def tell_pressure(self, pressure: pb.Pressure) -> None:
        """Tells the peer of a culprit, or that it is none any more."""
        self.channel.send(control_frame(Envelope(pressure=pressure)))

    def set_tasks(self, task_ids: tuple[int, ...], router: Router) -> None:
        """Takes the peer's tasks from a new plan; new ones are opened."""
        self.task_ids = task_ids
        if self._window_bytes is not None:
            self._open_outlets(router, self._window_bytes)

    def close(self, router: Router) -> bool:
        """The session is over: what waits, waits for the next. Whether anything was on its way."""
        outlets = [router.outlets[task_id] for task_id in self.task_ids if task_id in router.outlets]
        under_way = any(each.window and each.window.sent_bytes > each.window.released_bytes for each in outlets)
        for outlet in outlets:
            outlet.close()
        self.channel.close()
        return under_way

    def handle(self, frame: bytes, router: Router) -> None:
        """Takes a welcome or credit.

        Raises:
            RemoteProtocolError: when the frame breaks the rules.
        """
        kind, session, _ = parse_frame_header(frame)
        if kind == FrameKind.CREDIT and session == self._lane.session:
            task_id, released_bytes = parse_credit(frame)
            outlet = router.outlets.get(task_id)
            if outlet is not None and outlet.window is not None:
                outlet.window.release(released_bytes)
                router.touched.add(task_id)
        elif kind == FrameKind.CONTROL:
            self._welcome(parse_control(frame), router)

    def send_acks(self, segments: list[bytes]) -> None:
        """Sends what is about roots of the peer's tasks; needs no credit, and waits for no welcome."""
        self.channel.send(b"".join((self._lane.header(FrameKind.ACK), *segments)))

    def tell_loss(self, loss: pb.Loss) -> None:
        """Tells the peer that something is lost."""
        self.told_loss = True
        self.channel.send(control_frame(Envelope(loss=loss), self._lane.session))

    def pump(self, router: Router) -> int:
        """Sends what credit lets through; returns how many bytes."""
        sent_bytes = 0
        outlets = [router.outlets[task_id] for task_id in self.task_ids if task_id in router.outlets]
        while segments := next_segments(outlets, JOIN_BYTES):
            frame = b"".join((self._lane.header(FrameKind.DATA), *segments))
            self.channel.send(frame)
            sent_bytes += len(frame)
        return sent_bytes

    def _welcome(self, envelope: Envelope, router: Router) -> None:
        if body_of(envelope) == "refused":
            msg = f"container {self.location.container_id} refuses: {envelope.refused.reason}"
            raise RemoteProtocolError(msg)
        welcome = envelope.peer_welcome
        if body_of(envelope) != "peer_welcome" or welcome.session != self._lane.session:
            return  # an answer to an earlier hello
        self._window_bytes = welcome.window_bytes
        self._open_outlets(router, welcome.window_bytes)

    def _open_outlets(self, router: Router, window_bytes: int) -> None:
        for task_id in self.task_ids:
            outlet = router.outlets.get(task_id)
            if outlet is not None and outlet.window is None:
                outlet.open(window_bytes)
                router.resend_end_markers(task_id)
                router.touched.add(task_id)
