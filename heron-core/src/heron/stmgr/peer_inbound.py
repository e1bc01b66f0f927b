"""What a peer sends to this stream manager: its session, and the room it has per destination task."""

from __future__ import annotations

from heron.ipc.credit import CreditGrant
from heron.ipc.frame import FRAME_HEADER_BYTES, FrameKind, credit_body, frame_header, parse_frame_header
from heron.ipc.lane import ReceiveLane
from heron.ipc.socket import Hub
from heron.stmgr.counters import Counters
from heron.stmgr.outlet import Releasable
from heron.stmgr.router import Router

__all__ = ["PeerInbound"]


class _TaskRoom:
    """A producer for the router: one peer's data for one task; notes in `released` that there is credit to tell."""

    __slots__ = ("_released", "_task_id", "grant")

    def __init__(self, task_id: int, released: set[int]) -> None:
        self._task_id = task_id
        self._released = released
        self.grant = CreditGrant()

    def release(self, size_bytes: int) -> None:
        self.grant.release(size_bytes)
        self._released.add(self._task_id)


class PeerInbound:
    """One session of one peer."""

    def __init__(
        self, container_id: int, incarnation: int, identity: bytes, session: int, *, frames_before: int = 0
    ) -> None:
        self._frames_before = frames_before
        self.container_id = container_id
        self.incarnation = incarnation
        self.identity = identity
        self._session = session
        self._lane = ReceiveLane(session)
        self._rooms: dict[int, _TaskRoom] = {}
        self._released: set[int] = set()

    @property
    def frames(self) -> int:
        """How many frames this incarnation has sent that have come or are known to be lost, in all its sessions."""
        return self._frames_before + self._lane.expected - 1

    def receive(self, task_id: int, size_bytes: int) -> Releasable:
        """`heron.stmgr.router.PeerProducers`."""
        room = self._rooms.get(task_id)
        if room is None:
            room = self._rooms[task_id] = _TaskRoom(task_id, self._released)
        room.grant.receive(size_bytes)
        return room

    def producers(self) -> tuple[Releasable, ...]:
        """Every producer of this session."""
        return tuple(self._rooms.values())

    def handle(self, frame: bytes, router: Router, counters: Counters) -> None:
        """Routes a data or ack frame.

        Raises:
            RemoteProtocolError: when it breaks the rules; the session must end.
        """
        kind, session, sequence = parse_frame_header(frame)
        counters.lost_frames += self._lane.accept(session, sequence)
        if kind == FrameKind.ACK:
            counters.ack_bytes += len(frame)
            router.route_acks(frame)
            return
        counters.frames_from_peers += 1
        counters.bytes_from_peers += len(frame) - FRAME_HEADER_BYTES
        router.route_from_peer(frame, self)

    def send_credits(self, hub: Hub) -> None:
        """Tells the peer what was released since the last time, per task."""
        while self._released:
            task_id = self._released.pop()
            released = self._rooms[task_id].grant.due()
            if released is not None:
                header = frame_header(FrameKind.CREDIT, self._session, 0)
                hub.send(self.identity, header + credit_body(task_id, released))
