"""The channels to the other stream managers, one to each of them; `peer_hub` receives from them.

A network connection may break while both sides run. Then the sending side ends the session and opens a new one,
because credit in transit may be lost and would be missing from the window. The hello of the new session has the number
of frames that were sent before, so the receiver detects missing frames. Only a missing frame is a loss. While a peer
has no session, losses and acks for it cannot be sent. The next session starts with a loss message instead.
`peer_moves` moves sessions to connections with newer keys.
"""

from __future__ import annotations

import itertools
import logging

from heron.clock import monotonic_s
from heron.errors import RemoteProtocolError
from heron.ipc import control_pb2 as pb
from heron.ipc.keys import ClientKeys
from heron.planner.physical_plan import PlanIndex, StreamManagerLocation
from heron.stmgr.link_context import LinkContext
from heron.stmgr.peer_moves import PeerMoves, same_process
from heron.stmgr.peer_reach import PeerReach
from heron.stmgr.peer_session import PeerOutbound

__all__ = ["PeerLinks"]

_log = logging.getLogger(__name__)

_RECONNECT_S = 0.1  # the pause before a new session, so that a peer that refuses does not cost all processor time
_SILENT_BEATS = 3  # the missing heartbeats after which a peer is not reached


class PeerLinks:
    """The sessions to all peers of a stream manager."""

    def __init__(self, context: LinkContext) -> None:
        self._context = context
        self._limits = context.limits
        self._outbound: dict[int, PeerOutbound] = {}
        self.moves = PeerMoves(context, self._outbound, self._session, self._assign)
        self._locations: dict[int, StreamManagerLocation] = {}
        self._tasks_of: dict[int, tuple[int, ...]] = {}
        self._peer_of_task: dict[int, PeerOutbound] = {}
        self._container_of: dict[int, int] = {}
        self._loss_due: set[int] = set()
        self._frames_sent: dict[int, int] = {}  # in ended sessions, by container: those to its present location
        self._sessions = itertools.count(1)
        self.reach = PeerReach(_SILENT_BEATS * context.settings.heartbeat_s)

    def container_of(self, task_id: int) -> int:
        """The container of a peer's task; 0 when the task is not in the plan."""
        return self._container_of.get(task_id, 0)

    def set_plan(self, index: PlanIndex) -> None:
        """Connects to the stream managers of a plan and disconnects from those that left it."""
        own = self._context.spec.container_id
        former = self._locations
        present = self._locations = {cid: location for cid, location in index.containers.items() if cid != own}
        task_ids: dict[int, list[int]] = {cid: [] for cid in present}
        for task in index.plan.tasks:
            if task.container_id in task_ids:
                task_ids[task.container_id].append(task.task_id)
        self._tasks_of = {cid: tuple(own) for cid, own in task_ids.items()}
        self.reach.expect(present, monotonic_s())
        self._container_of = {task_id: cid for cid, own in self._tasks_of.items() for task_id in own}
        for container_id, location in former.items():
            if not same_process(present, location):
                self._leave(container_id)
        for container_id, location in present.items():
            if container_id in self._outbound:
                self._outbound[container_id].location = location
            elif not same_process(former, location):
                self._open(location)
        self.moves.peers = present
        self.moves.follow()
        self._peer_of_task = {}
        for container_id in self._outbound:
            self._assign(container_id)

    def pump(self, task_ids: set[int]) -> None:
        """Sends the outlets of the peers that have these tasks."""
        peers = {self._peer_of_task[task_id] for task_id in task_ids if task_id in self._peer_of_task}
        for peer in peers:
            self._context.counters.bytes_to_peers += peer.pump(self._context.router)

    def have_everything(self) -> bool:
        """Whether the peers have confirmed all data for their tasks."""
        router = self._context.router
        outlets = (router.outlets[task_id] for task_id in self._container_of if task_id in router.outlets)
        return all(outlet.is_confirmed() for outlet in outlets)

    def send_acks(self, task_id: int, segments: list[bytes]) -> bool:
        """Sends segments about roots of a peer's task; False when no peer with this task is connected."""
        peer = self._peer_of_task.get(task_id)
        if peer is None:
            if task_id in self._container_of:
                self._loss_due.add(self._container_of[task_id])
            return False
        peer.send_acks(segments)
        return True

    def send_loss(self, task_id: int) -> None:
        """Reports to every peer that an incarnation of a local task is lost, or with 0 that data was lost."""
        for container_id in self._locations:
            peer = self._outbound.get(container_id)
            if peer is not None:
                peer.send_loss(pb.Loss(task_id=task_id))
            else:
                self._loss_due.add(container_id)

    def send_pressure(self, pressure: pb.Pressure) -> None:
        """Reports a culprit to every connected peer; the others receive it after their next hello."""
        for peer in self._outbound.values():
            peer.send_pressure(pressure)

    def _assign(self, container_id: int) -> None:
        peer, task_ids = self._outbound[container_id], self._tasks_of[container_id]
        peer.set_tasks(task_ids, self._context.router)
        self._peer_of_task.update(dict.fromkeys(task_ids, peer))

    def _open(self, location: StreamManagerLocation) -> None:
        keys = self.moves.newest(location)
        if keys is None:
            _log.warning("no keys in common with the stream manager of container %d yet", location.container_id)
            self._context.reactor.after(_RECONNECT_S, lambda: self._reopen(location))
            return
        self._outbound[location.container_id] = peer = self._session(location, keys)
        self._begin(peer)

    def _session(self, location: StreamManagerLocation, keys: ClientKeys) -> PeerOutbound:
        """Connects for a session, which begins later."""
        context, spec = self._context, self._context.spec
        session = next(self._sessions)
        identity = f"c{spec.container_id}-{spec.incarnation}-{session}".encode()
        endpoint = location.endpoints().get(keys.server_public, location.endpoint)
        channel = context.sockets.client_of(endpoint, identity, keys=keys)
        peer = PeerOutbound(location, channel, keys.server_public, session, self._limits)
        context.reactor.on_readable(channel, lambda: self._read(peer))
        context.reactor.on_disconnect(channel, lambda: self._disconnected(peer), lambda: self.moves.connected(peer))
        return peer

    def _begin(self, peer: PeerOutbound) -> None:
        context, spec, container_id = self._context, self._context.spec, peer.location.container_id
        peer.send_hello(spec.container_id, spec.incarnation, self._frames_sent.get(container_id, 0))
        if container_id in self._loss_due:
            self._loss_due.discard(container_id)
            peer.send_loss(pb.Loss())
        for task_id in context.pressure.own_culprits():
            peer.send_pressure(pb.Pressure(task_id=task_id, container_id=spec.container_id, on=True))

    def _leave(self, container_id: int) -> None:
        """Disconnects from an incarnation that left the plan; data that it did not confirm is lost."""
        self._end_move(container_id)
        self._loss_due.discard(container_id)
        peer = self._outbound.get(container_id)
        unknown = self._frames_sent.pop(container_id, 0) > 0 and not (peer and peer.welcomed)
        under_way = self._close(container_id) if peer else False
        self._context.counters.broken_links += unknown or under_way

    def _close(self, container_id: int) -> bool:
        peer = self._outbound.pop(container_id)
        for task_id in peer.task_ids:
            self._peer_of_task.pop(task_id, None)
        self._context.reactor.forget(peer.channel)
        return peer.close(self._context.router)

    def _read(self, peer: PeerOutbound) -> None:
        try:
            while (frame := peer.channel.receive()) is not None:
                self.reach.heard(peer.location.container_id, monotonic_s())
                peer.handle(frame, self._context.router)
            if peer.ended:
                self._continue_move(peer)
        except RemoteProtocolError as error:
            message = f"session with container {peer.location.container_id} ended: {error}"
            # a refused hello loses nothing
            self._context.note_violation("to-peer", error, message, reported=peer.welcomed)
            self._context.counters.lost_tuples += peer.lost.rows if peer.lost is not None else 0
            if self.moves.moves_away(peer):
                self._continue_move(peer)
            else:
                self._restart_session(peer)

    def _continue_move(self, peer: PeerOutbound) -> None:
        """Begins the next session: the former one is over. Or ends the move: its new connection is gone."""
        if self.moves.has(peer) and (following := self._end_move(peer.location.container_id)) is not None:
            self._begin(following)

    def _end_move(self, container_id: int) -> PeerOutbound | None:
        former, following = self.moves.end(container_id)
        if former is not None:
            self._frames_sent[container_id] = self._frames_sent.get(container_id, 0) + former.frames
            if former.loss_sent and not former.ended:
                self._loss_due.add(container_id)
        return following

    def _disconnected(self, peer: PeerOutbound) -> None:
        """Starts another session; the plan reports whether the peer itself is gone."""
        container_id = peer.location.container_id
        if self.moves.moves_away(peer):
            self._read(peer)  # the answer to the end of the session
            self._continue_move(peer)
            return
        if self._outbound.get(container_id) is peer:
            self._read(peer)  # the last credit
        if self._outbound.get(container_id) is peer:  # unless the last frame has ended the session
            if peer.welcomed:  # log the lost connection, not each attempt after it
                _log.info("connection to the stream manager of container %d is lost", container_id)
            self._restart_session(peer)

    def _restart_session(self, peer: PeerOutbound) -> None:
        container_id = peer.location.container_id
        self._end_move(container_id)
        self._frames_sent[container_id] = self._frames_sent.get(container_id, 0) + peer.frames
        if peer.loss_sent:
            self._loss_due.add(container_id)  # the loss message may not have arrived
        self._close(container_id)  # frames under way are not lost yet: the peer knows which ones have arrived
        self._context.reactor.after(_RECONNECT_S, lambda: self._reopen(peer.location))

    def _reopen(self, location: StreamManagerLocation) -> None:
        container_id = location.container_id
        if same_process(self._locations, location) and container_id not in self._outbound:
            self._open(self._locations[container_id])
            if container_id in self._outbound:
                self._assign(container_id)
