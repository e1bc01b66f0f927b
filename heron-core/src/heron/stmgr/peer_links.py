"""The links to the other stream managers: a hub for what they send, a channel to each for what they get.

The link itself is always read; what bounds it is credit per destination task (design D6).

The links are on the network, where a connection may break while both sides live. Then the sending side ends the
session and begins another: credit that was under way would be lost otherwise, and with it the room that it stands for.
Its hello says how many frames it has sent before, so the other side knows whether any is missing: only then something
is lost. What could not be said to a peer meanwhile (a loss, an ack) is made good by telling it of a loss.
"""

from __future__ import annotations

import itertools
import logging

from heron.clock import monotonic_s
from heron.errors import RemoteProtocolError
from heron.ipc import control_pb2 as pb
from heron.ipc.envelope import Envelope, body_of, control_frame, parse_control
from heron.ipc.frame import WIRE_VERSION, FrameKind, parse_frame_header
from heron.ipc.guarded_hub import open_guarded_hub
from heron.planner.physical_plan import PlanIndex, StreamManagerLocation
from heron.stmgr.back_pressure import Reporter
from heron.stmgr.link_host import FRAMES_A_ROUND, LinkHost
from heron.stmgr.peer_inbound import PeerInbound
from heron.stmgr.peer_outbound import PeerOutbound
from heron.stmgr.peer_reach import PeerReach

__all__ = ["PeerLinks"]

_log = logging.getLogger(__name__)

_REOPEN_AFTER_S = 0.1  # a peer that refuses is asked again, not asked without pause
_QUIET_BEATS = 3  # a peer from which so many heartbeats are missing is not reached


class PeerLinks:
    """All peers of a stream manager."""

    def __init__(self, host: LinkHost) -> None:
        self._host = host
        self._inbound: dict[bytes, PeerInbound] = {}
        self._outbound: dict[int, PeerOutbound] = {}
        self._wanted: dict[int, StreamManagerLocation] = {}
        self._tasks_of: dict[int, tuple[int, ...]] = {}
        self._peer_of_task: dict[int, PeerOutbound] = {}
        self._container_of: dict[int, int] = {}
        self._owed: set[int] = set()
        # Of sessions that are over, by container: frames sent to its present location; its incarnation, frames heard.
        self._sent: dict[int, int] = {}
        self._heard: dict[int, tuple[int, int]] = {}
        self._sessions = itertools.count(1)
        self.reach = PeerReach(_QUIET_BEATS * host.settings.heartbeat_s)
        self._hub = open_guarded_hub(host.sockets, host.settings.network_host, host.spec.peer_keys)
        host.reactor.guard(self._hub)
        host.reactor.on_readable(self._hub, self._read_hub)

    @property
    def endpoint(self) -> str:
        """Where the peers connect to."""
        return self._hub.endpoint

    def refused(self) -> dict[str, int]:
        """How many connections were not let in, by reason."""
        return self._hub.gate.refused()

    def container_of(self, task_id: int) -> int:
        """The container of a peer's task; 0 when it has none in the plan."""
        return self._container_of.get(task_id, 0)

    def set_plan(self, index: PlanIndex) -> None:
        """Connects to the stream managers of a plan and leaves those that are no longer in it."""
        own = self._host.spec.container_id
        former = self._wanted
        wanted = self._wanted = {cid: location for cid, location in index.containers.items() if cid != own}
        self._tasks_of = {
            cid: tuple(task.task_id for task in index.plan.tasks if task.container_id == cid) for cid in wanted
        }
        self.reach.expect(wanted, monotonic_s())
        self._container_of = {task_id: cid for cid, task_ids in self._tasks_of.items() for task_id in task_ids}
        for container_id, location in former.items():
            if wanted.get(container_id) != location:
                self._leave(container_id)
        for container_id in former.keys() - wanted.keys():
            self._forget_container(container_id)
        for container_id, location in wanted.items():
            if container_id not in self._outbound and former.get(container_id) != location:
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
            if task_id in self._container_of:
                self._owed.add(self._container_of[task_id])
            return False
        peer.send_acks(segments)
        return True

    def tell_loss(self, task_id: int) -> None:
        """Tells every peer that an incarnation of a local task is gone, or (0) something that was on its way."""
        for container_id in self._wanted:
            peer = self._outbound.get(container_id)
            if peer is not None:
                peer.tell_loss(pb.Loss(task_id=task_id))
            else:
                self._owed.add(container_id)

    def tell_pressure(self, pressure: pb.Pressure) -> None:
        """Tells every peer of a culprit; who is not connected hears it with the next hello."""
        for peer in self._outbound.values():
            peer.tell_pressure(pressure)

    def beat(self) -> None:
        """Tells every peer that hears this one by now that it is there."""
        spec = self._host.spec
        frame = control_frame(
            Envelope(heartbeat=pb.Heartbeat(container_id=spec.container_id, incarnation=spec.incarnation))
        )
        for identity in self._inbound:
            self._hub.send(identity, frame)

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
        channel = self._host.sockets.client_of(location.endpoint, identity, keys=spec.keys)
        peer = PeerOutbound(location, channel, session)
        container_id = location.container_id
        self._outbound[container_id] = peer
        self._host.reactor.on_readable(peer.channel, lambda: self._read(peer))
        self._host.reactor.on_disconnect(peer.channel, lambda: self._broken(peer))
        peer.say_hello(spec.container_id, spec.incarnation, self._sent.get(container_id, 0))
        if container_id in self._owed:
            self._owed.discard(container_id)
            peer.tell_loss(pb.Loss())
        for task_id in self._host.pressure.own_culprits():
            peer.tell_pressure(pb.Pressure(task_id=task_id, container_id=spec.container_id, on=True))

    def _leave(self, container_id: int) -> None:
        """That incarnation is not in the plan any more: what it has not confirmed is lost."""
        self._owed.discard(container_id)
        peer = self._outbound.get(container_id)
        unknown = self._sent.pop(container_id, 0) > 0 and not (peer and peer.welcomed)
        under_way = self._close(container_id) if peer else False
        self._host.counters.broken_links += unknown or under_way

    def _close(self, container_id: int) -> bool:
        peer = self._outbound.pop(container_id)
        for task_id in peer.task_ids:
            self._peer_of_task.pop(task_id, None)
        self._host.reactor.forget(peer.channel)
        return peer.close(self._host.router)

    def _read(self, peer: PeerOutbound) -> None:
        try:
            while (frame := peer.channel.receive()) is not None:
                self.reach.heard(peer.location.container_id, monotonic_s())
                peer.handle(frame, self._host.router)
        except RemoteProtocolError as error:
            _log.error("peer container %d broke the rules: %s", peer.location.container_id, error)
            self._host.counters.refused_frames += 1
            self._begin_anew(peer)

    def _broken(self, peer: PeerOutbound) -> None:
        """The connection is gone; whether the peer is too, the plan will tell."""
        if self._outbound.get(peer.location.container_id) is peer:
            self._read(peer)  # the credit that came last
        if self._outbound.get(peer.location.container_id) is peer:
            if peer.welcomed:  # the attempts after it are no news
                _log.info("the connection to the stream manager of container %d is gone", peer.location.container_id)
            self._begin_anew(peer)

    def _begin_anew(self, peer: PeerOutbound) -> None:
        container_id = peer.location.container_id
        self._sent[container_id] = self._sent.get(container_id, 0) + peer.frames
        if peer.told_loss:
            self._owed.add(container_id)  # it may not have heard
        self._close(container_id)  # what was on its way is no loss yet: the peer knows what it has
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
            self._handle_control(identity, parse_control(frame))
        else:
            msg = f"frame of kind {kind} from a peer"
            raise RemoteProtocolError(msg)

    def _handle_control(self, identity: bytes, envelope: Envelope) -> None:
        body = body_of(envelope)
        if body == "loss":
            task_id = envelope.loss.task_id
            self._host.acks.lost(f"task {task_id}" if task_id else "something on its way")
        elif body == "pressure":
            inbound = self._inbound.get(identity)
            if inbound is None:
                self._host.counters.refused_frames += 1  # of a session that is over: the next one says it again
                return
            reporter = Reporter(inbound.container_id, inbound.incarnation)
            self._host.pressure.report(envelope.pressure.task_id, reporter, on=envelope.pressure.on)
        else:
            self._greet(identity, envelope)

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
        self._inbound[identity] = PeerInbound(
            hello.container_id, hello.incarnation, identity, hello.session, frames_before=hello.frames_before
        )
        welcome = pb.PeerWelcome(
            container_id=self._host.spec.container_id,
            incarnation=self._host.spec.incarnation,
            session=hello.session,
            window_bytes=self._host.settings.link_window_bytes,
        )
        self._hub.send(identity, control_frame(Envelope(peer_welcome=welcome)))

        incarnation, frames = self._heard.pop(hello.container_id, (hello.incarnation, 0))
        missing = hello.frames_before - frames if incarnation == hello.incarnation else hello.frames_before
        self._host.counters.lost_frames += max(0, missing)

    def _forget(self, identity: bytes) -> None:
        inbound = self._inbound.pop(identity, None)
        if inbound is not None:
            self._heard[inbound.container_id] = (inbound.incarnation, inbound.frames)
            self._host.pressure.forget(Reporter(inbound.container_id, inbound.incarnation))
        for producer in inbound.producers() if inbound else ():
            self._host.router.forget(producer)

    def _forget_container(self, container_id: int) -> None:
        """It is in no plan any more, and will not come back under its number."""
        for identity in [each for each, inbound in self._inbound.items() if inbound.container_id == container_id]:
            self._forget(identity)
        self._heard.pop(container_id, None)
