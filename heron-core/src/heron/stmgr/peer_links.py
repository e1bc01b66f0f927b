"""The links to the other stream managers: a hub for what they send, a channel to each for what they get.

The link itself is always read; what bounds it is credit per destination task (design D6).
"""

from __future__ import annotations

import itertools
import logging

from heron.errors import RemoteProtocolError
from heron.ipc import control_pb2 as pb
from heron.ipc.endpoint import peer_endpoint
from heron.ipc.envelope import Envelope, body_of, control_frame, parse_control
from heron.ipc.frame import WIRE_VERSION, FrameKind, parse_frame_header
from heron.planner.physical_plan import PlanIndex, StreamManagerLocation
from heron.stmgr.link_host import FRAMES_A_ROUND, LinkHost
from heron.stmgr.peer_inbound import PeerInbound
from heron.stmgr.peer_outbound import PeerOutbound

__all__ = ["PeerLinks"]

_log = logging.getLogger(__name__)

_REOPEN_AFTER_S = 0.1  # a peer that refuses is asked again, not asked without pause


class PeerLinks:
    """All peers of a stream manager."""

    def __init__(self, host: LinkHost) -> None:
        self._host = host
        self._inbound: dict[bytes, PeerInbound] = {}
        self._outbound: dict[int, PeerOutbound] = {}
        self._wanted: dict[int, StreamManagerLocation] = {}
        self._tasks_of: dict[int, tuple[int, ...]] = {}
        self._peer_of_task: dict[int, PeerOutbound] = {}
        self._sessions = itertools.count(1)
        self.endpoint = peer_endpoint(host.run_dir, host.spec.container_id, host.spec.incarnation)
        self._hub = host.sockets.hub(self.endpoint)
        host.reactor.on_readable(self._hub, self._read_hub)

    def set_plan(self, index: PlanIndex) -> None:
        """Connects to the stream managers of a plan and leaves those that are no longer in it."""
        own = self._host.spec.container_id
        wanted = self._wanted = {cid: location for cid, location in index.containers.items() if cid != own}
        self._tasks_of = {
            cid: tuple(task.task_id for task in index.plan.tasks if task.container_id == cid) for cid in wanted
        }
        for container_id, peer in tuple(self._outbound.items()):
            if wanted.get(container_id) != peer.location:
                self._close(container_id)
        for container_id, location in wanted.items():
            if container_id not in self._outbound:
                self._open(location)
        self._peer_of_task = {}
        for container_id in self._outbound:
            self._assign(container_id)

    def pump(self, task_ids: set[int]) -> None:
        """Sends what waits for the peers of these tasks."""
        peers = {self._peer_of_task[task_id] for task_id in task_ids if task_id in self._peer_of_task}
        for peer in peers:
            self._host.counters.bytes_to_peers += peer.pump(self._host.router)

    def send_acks(self, task_id: int, segments: list[bytes]) -> bool:
        """Sends what is about roots of a peer's task; False when no peer has it at the moment."""
        peer = self._peer_of_task.get(task_id)
        if peer is None:
            return False
        peer.send_acks(segments)
        return True

    def tell_loss(self, task_id: int) -> None:
        """Tells every peer that an incarnation of a local task is gone, or (0) something that was on its way."""
        for peer in self._outbound.values():
            peer.send_control(Envelope(loss=pb.Loss(task_id=task_id)))

    def send_credits(self) -> None:
        """Tells every peer what was released in this round."""
        for inbound in self._inbound.values():
            inbound.send_credits(self._hub)

    def _assign(self, container_id: int) -> None:
        peer, task_ids = self._outbound[container_id], self._tasks_of[container_id]
        peer.set_tasks(task_ids, self._host.router)
        self._peer_of_task.update(dict.fromkeys(task_ids, peer))

    def _open(self, location: StreamManagerLocation) -> None:
        spec = self._host.spec
        session = next(self._sessions)
        identity = f"c{spec.container_id}-{spec.incarnation}-{session}".encode()
        peer = PeerOutbound(location, self._host.sockets.client_of(location.endpoint, identity), session)
        self._outbound[location.container_id] = peer
        self._host.reactor.on_readable(peer.channel, lambda: self._read(peer))
        peer.say_hello(spec.container_id, spec.incarnation)

    def _close(self, container_id: int) -> None:
        peer = self._outbound.pop(container_id)
        for task_id in peer.task_ids:
            self._peer_of_task.pop(task_id, None)
        self._host.reactor.forget(peer.channel)
        self._host.counters.broken_links += peer.close(self._host.router)

    def _read(self, peer: PeerOutbound) -> None:
        try:
            while (frame := peer.channel.receive()) is not None:
                peer.handle(frame, self._host.router)
        except RemoteProtocolError as error:
            _log.error("peer container %d broke the rules: %s", peer.location.container_id, error)
            self._host.counters.refused_frames += 1
            self._close(peer.location.container_id)
            self._host.counters.broken_links += 1  # acks may have been on their way
            self._host.reactor.after(_REOPEN_AFTER_S, lambda: self._reopen(peer.location))

    def _reopen(self, location: StreamManagerLocation) -> None:
        container_id = location.container_id
        if self._wanted.get(container_id) == location and container_id not in self._outbound:
            self._open(location)
            self._assign(container_id)

    def _read_hub(self) -> None:
        for _ in range(FRAMES_A_ROUND):
            message = self._hub.receive()
            if message is None:
                return
            identity, frame = message
            try:
                self._handle(identity, frame)
            except RemoteProtocolError as error:
                self._host.counters.refused_frames += 1
                _log.error("session of peer %r ended: %s", identity, error)
                self._forget(identity)
                self._hub.send(identity, control_frame(Envelope(refused=pb.Refused(reason=str(error)))))

    def _handle(self, identity: bytes, frame: bytes) -> None:
        kind, _, _ = parse_frame_header(frame)
        if kind in (FrameKind.DATA, FrameKind.ACK):
            inbound = self._inbound.get(identity)
            if inbound is None:
                self._host.counters.refused_frames += 1  # of a session that is over: dropped until a new hello
                return
            inbound.handle(frame, self._host.router, self._host.counters)
        elif kind == FrameKind.CONTROL:
            envelope = parse_control(frame)
            if body_of(envelope) == "loss":
                task_id = envelope.loss.task_id
                self._host.acks.lost(f"task {task_id}" if task_id else "something on its way")
            else:
                self._greet(identity, envelope)
        else:
            msg = f"frame of kind {kind} from a peer"
            raise RemoteProtocolError(msg)

    def _greet(self, identity: bytes, envelope: Envelope) -> None:
        hello = envelope.peer_hello
        if body_of(envelope) != "peer_hello" or hello.wire_version != WIRE_VERSION:
            msg = f"{body_of(envelope)} of wire version {hello.wire_version} where hello was due"
            raise RemoteProtocolError(msg)
        for known, inbound in tuple(self._inbound.items()):
            if inbound.container_id == hello.container_id:
                if hello.incarnation < inbound.incarnation:
                    msg = f"incarnation {hello.incarnation} after {inbound.incarnation}"
                    raise RemoteProtocolError(msg)
                self._forget(known)
        self._inbound[identity] = PeerInbound(hello.container_id, hello.incarnation, identity, hello.session)
        welcome = pb.PeerWelcome(
            container_id=self._host.spec.container_id,
            incarnation=self._host.spec.incarnation,
            session=hello.session,
            window_bytes=self._host.settings.link_window_bytes,
        )
        self._hub.send(identity, control_frame(Envelope(peer_welcome=welcome)))

    def _forget(self, identity: bytes) -> None:
        inbound = self._inbound.pop(identity, None)
        for producer in inbound.producers() if inbound else ():
            self._host.router.forget(producer)
