"""The hub that receives from the other stream managers: one session of each of them.

The hub is always read. Credit for each destination task limits what the peers send.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from heron.errors import RemoteProtocolError, Violation
from heron.ipc import control_pb2 as pb
from heron.ipc.envelope import Envelope, body_of, control_frame, parse_control
from heron.ipc.frames.frame import WIRE_VERSION, FrameKind, parse_frame_header
from heron.ipc.guarded_hub import open_guarded_hub
from heron.ipc.keys import ServerKeys
from heron.stmgr.back_pressure import Reporter
from heron.stmgr.link_context import FRAMES_A_ROUND, LinkContext
from heron.stmgr.peer_session import PeerInbound

__all__ = ["PeerHub"]

_LINK = "from-peer"
_OF_SESSIONS = ("loss", "pressure")
_MOST_SESSIONS = 10_000  # with containers outside of the plan; a container may come before the plan that has it


class PeerHub:
    """The sessions from all peers of a stream manager."""

    def __init__(self, context: LinkContext) -> None:
        self._context = context
        self._limits = context.limits
        self._inbound: dict[bytes, PeerInbound] = {}
        self._frames_received: dict[int, tuple[int, int]] = {}  # in ended sessions, by container: incarnation, frames
        self._containers: frozenset[int] = frozenset()
        self._hub = open_guarded_hub(context.sockets, context.settings.network_host, context.spec.peer_keys[0])
        self._hub.set_keys(context.spec.peer_keys)
        context.reactor.guard(self._hub)
        context.reactor.on_readable(self._hub, self._read)

    @property
    def endpoints(self) -> Mapping[str, str]:
        """The addresses that peers connect to, by the server's public key, oldest set of keys first."""
        return self._hub.endpoints

    def set_keys(self, sets: Sequence[ServerKeys]) -> None:
        """Listens with these sets of keys; sessions of others end. Raises as `GuardedHub.set_keys` does."""
        self._hub.set_keys(sets)

    def refused(self) -> dict[str, int]:
        """The number of refused connections, by reason."""
        return self._hub.gate.refused()

    def set_plan(self, containers: Collection[int]) -> None:
        """Forgets the sessions of containers that have left the plan: their numbers do not come back."""
        former, self._containers = self._containers, frozenset(containers)
        for container_id in former - self._containers:
            for identity in [each for each, inbound in self._inbound.items() if inbound.container_id == container_id]:
                self._forget(identity)
            self._frames_received.pop(container_id, None)

    def send_heartbeats(self) -> None:
        """Sends a heartbeat to every peer that has a session here."""
        spec = self._context.spec
        frame = control_frame(
            Envelope(heartbeat=pb.Heartbeat(container_id=spec.container_id, incarnation=spec.incarnation))
        )
        for identity in self._inbound:
            self._hub.send(identity, frame)

    def send_credits(self) -> None:
        """Sends the credit of this round to every peer."""
        for inbound in self._inbound.values():
            inbound.send_credits(self._hub)

    def _read(self) -> None:
        for _ in range(FRAMES_A_ROUND):
            message = self._hub.receive()
            if message is None:
                return
            identity, frame = message
            try:
                self._handle(identity, frame)
            except RemoteProtocolError as error:
                self._refuse(identity, error)

    def _refuse(self, identity: bytes, error: RemoteProtocolError) -> None:
        """Ends the session of a peer that broke the protocol, and says in which frame."""
        reason = str(error)
        inbound, refused = self._inbound.get(identity), pb.Refused(reason=reason)
        peer = repr(identity)
        if inbound is not None:
            refused.frames.session, refused.frames.taken = inbound.session, inbound.taken
            peer = f"container {inbound.container_id}"
        message = f"session of {peer} ended in frame {refused.frames.taken + 1}: {reason}"
        self._context.note_violation(_LINK, error, message, reported=inbound is not None)
        self._forget(identity)
        if self._context.refusals.may_answer(identity):
            self._hub.send(identity, control_frame(Envelope(refused=refused)))

    def _handle(self, identity: bytes, frame: bytes) -> None:
        kind, _, _ = parse_frame_header(frame)
        if kind in (FrameKind.DATA, FrameKind.ACK):
            inbound = self._inbound.get(identity)
            if inbound is None:
                self._drop()  # of an ended session: dropped until the next hello
                return
            inbound.handle(frame, self._context.router, self._context.counters)
        elif kind == FrameKind.CONTROL:
            self._handle_control(identity, parse_control(frame))
        else:
            msg = f"frame of kind {kind} from a peer"
            raise RemoteProtocolError(msg, Violation.KIND)

    def _drop(self) -> None:
        """Counts a frame without a session."""
        self._context.counters.refused_frames += 1
        self._context.refusals.count(_LINK, Violation.SESSION)

    def _handle_control(self, identity: bytes, envelope: Envelope) -> None:
        body = body_of(envelope)
        if body == "peer_end":  # a peer that waits for the answer sends nothing, so every one is answered
            self._forget(identity)
            self._hub.send(identity, control_frame(envelope))
        elif body in _OF_SESSIONS and identity not in self._inbound:
            self._drop()  # of an ended session: the next one reports it again
        elif body == "loss":
            task_id = envelope.loss.task_id
            self._context.acks.fail_all(f"task {task_id}" if task_id else "data under way")
        elif body == "pressure":
            inbound = self._inbound[identity]
            reporter = Reporter(inbound.container_id, inbound.incarnation)
            self._context.pressure.report(envelope.pressure.task_id, reporter, on=envelope.pressure.on)
        else:
            self._handle_hello(identity, envelope)

    def _handle_hello(self, identity: bytes, envelope: Envelope) -> None:
        hello = envelope.peer_hello
        if body_of(envelope) != "peer_hello" or hello.wire_version != WIRE_VERSION:
            msg = f"{body_of(envelope)} of wire version {hello.wire_version} instead of a hello"
            is_hello = body_of(envelope) == "peer_hello"
            raise RemoteProtocolError(msg, Violation.VERSION if is_hello else Violation.KIND)
        present = self._inbound.get(identity)
        if present is not None:
            msg = f"a second hello, of container {hello.container_id}, in session {present.session}"
            raise RemoteProtocolError(msg, Violation.SESSION)
        if hello.container_id not in self._containers and len(self._inbound) >= _MOST_SESSIONS:
            msg = f"a hello of container {hello.container_id}, which is not in the plan; {_MOST_SESSIONS} wait already"
            raise RemoteProtocolError(msg, Violation.SESSION)
        for known, inbound in tuple(self._inbound.items()):
            if inbound.container_id == hello.container_id:
                if hello.incarnation < inbound.incarnation:
                    msg = (
                        f"a hello of container {hello.container_id}, incarnation {hello.incarnation}, after that of "
                        f"incarnation {inbound.incarnation}: an older process of the container still runs"
                    )
                    raise RemoteProtocolError(msg, Violation.SESSION)
                self._forget(known)
        self._inbound[identity] = PeerInbound(hello, identity, self._limits)
        welcome = pb.PeerWelcome(
            container_id=self._context.spec.container_id,
            incarnation=self._context.spec.incarnation,
            session=hello.session,
            window_bytes=self._context.settings.link_window_bytes,
        )
        self._hub.send(identity, control_frame(Envelope(peer_welcome=welcome)))

        incarnation, frames = self._frames_received.pop(hello.container_id, (hello.incarnation, 0))
        missing = hello.frames_before - frames if incarnation == hello.incarnation else hello.frames_before
        self._context.counters.lost_frames += max(0, missing)

    def _forget(self, identity: bytes) -> None:
        inbound = self._inbound.pop(identity, None)
        if inbound is not None:
            self._frames_received[inbound.container_id] = (inbound.incarnation, inbound.frames)
            self._context.pressure.forget(Reporter(inbound.container_id, inbound.incarnation))
        for producer in inbound.producers() if inbound else ():
            self._context.router.forget(producer)
