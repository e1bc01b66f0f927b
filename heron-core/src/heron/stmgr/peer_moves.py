"""Sessions that move to another connection because keys rotate; decision 059.

A session moves when both sides have newer keys. Data flows on while the new connection is made. Then the session ends:
the peer answers when it has taken the last frame. Segments and acks wait for this answer, and nothing is lost or sent
again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from heron.ipc.keys import ClientKeys
from heron.planner.physical_plan import StreamManagerLocation
from heron.stmgr.link_context import LinkContext
from heron.stmgr.peer_session import PeerOutbound

__all__ = ["PeerMoves", "same_process"]


@dataclass(slots=True)
class _Move:
    """The next session, and the former one from its end until the peer has answered."""

    following: PeerOutbound
    former: PeerOutbound | None = None


class PeerMoves:
    """The moves under way, and the present sets of keys. The sessions that data uses belong to `PeerLinks`."""

    def __init__(
        self,
        context: LinkContext,
        sessions: dict[int, PeerOutbound],
        connect: Callable[[StreamManagerLocation, ClientKeys], PeerOutbound],
        assign: Callable[[int], None],
    ) -> None:
        """`connect` opens a connection for a session that begins later. `assign` gives the session its tasks."""
        self._context = context
        self._keys: Sequence[ClientKeys] = context.spec.keys
        self._sessions = sessions
        self._connect = connect
        self._assign = assign
        self._moves: dict[int, _Move] = {}
        self.peers: Collection[int] = ()
        """The containers of the other stream managers of the plan."""

    def newest(self, location: StreamManagerLocation) -> ClientKeys | None:
        """The newest keys that the peer and this process have."""
        if not location.server_key:
            return self._keys[0]
        offered = location.endpoints()
        return next((keys for keys in reversed(self._keys) if keys.server_public in offered), None)

    def follow(self, keys: Sequence[ClientKeys] = ()) -> None:
        """Takes the present sets of keys, oldest first, and begins to move each session for which both have newer ones.

        Call it again without keys: an attempt may fail.
        """
        self._keys = keys or self._keys
        for container_id, peer in self._sessions.items():
            newest = self.newest(peer.location)
            if peer.welcomed and newest and newest.server_public != peer.server_key and container_id not in self._moves:
                self._moves[container_id] = _Move(self._connect(peer.location, newest))

    def are_over(self) -> bool:
        """Whether there is a session to every peer of the plan, and all of them use the newest keys."""
        newest = self._keys[-1].server_public
        moved = all(peer.welcomed and peer.server_key == newest for peer in self._sessions.values())
        return moved and self._sessions.keys() == set(self.peers)

    def connected(self, peer: PeerOutbound) -> None:
        """Ends the session that moves to this connection, if one does."""
        container_id = peer.location.container_id
        move, former = self._moves.get(container_id), self._sessions.get(container_id)
        if move is None or move.following is not peer or former is None or former is peer:
            return
        move.former, peer.location = former, former.location
        former.end(self._context.router)
        self._sessions[container_id] = peer
        self._assign(container_id)

    def moves_away(self, peer: PeerOutbound) -> bool:
        """Whether the connection of this session is not the one that data uses."""
        return self._sessions.get(peer.location.container_id) is not peer

    def has(self, peer: PeerOutbound) -> bool:
        """Whether this session is a part of a move."""
        move = self._moves.get(peer.location.container_id)
        return move is not None and peer in (move.former, move.following)

    def end(self, container_id: int) -> tuple[PeerOutbound | None, PeerOutbound | None]:
        """Closes the connection that a move leaves: the former one, or a new one whose session has not begun.

        Returns the session that has ended, and the one that can begin.
        """
        move = self._moves.pop(container_id, None)
        if move is None:
            return None, None
        left = move.former or move.following
        self._context.reactor.forget(left.channel)
        left.channel.close()
        return (move.former, move.following) if move.former else (None, None)


def same_process(locations: Mapping[int, StreamManagerLocation], location: StreamManagerLocation) -> bool:
    """Whether a plan has the incarnation of a location, which may listen at other ports since."""
    present = locations.get(location.container_id)
    return present is not None and present.incarnation == location.incarnation
