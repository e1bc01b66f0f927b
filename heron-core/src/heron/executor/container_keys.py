"""The keys of the topology, as the executor of a container has read them last."""

from __future__ import annotations

import logging

from heron.errors import HeronError
from heron.ipc.keys import ClientKeys, ClientKind, KeyRing, keys_of_server
from heron.spi.statemgr import Versioned
from heron.state_nodes.topology_keys import decode_key_ring

__all__ = ["ContainerKeys"]

_log = logging.getLogger(__name__)


class ContainerKeys:
    """The present ring, and the version of its node; `heron.ipc.locator.KeySource` of the executor itself."""

    def __init__(self, ring: KeyRing, version: int) -> None:
        self.ring = ring
        self.version = version

    def of_server(self, server_public: str) -> ClientKeys | None:
        """The member's keys for the server with that public key; None when they are not on the ring."""
        known = [keys.connecting_as(ClientKind.MEMBER) for keys in self.ring.sets()]
        return keys_of_server(server_public, known)

    def take(self, version: int) -> None:
        """Does nothing: the executor follows the node itself."""

    def follow(self, node: Versioned | None, topology: str) -> KeyRing | None:
        """Takes a value of the node; returns the ring before, or None when the ring is the same."""
        if node is None or node.version <= self.version:
            return None
        try:
            ring = decode_key_ring(node.value, topology)
        except HeronError as error:
            _log.error("the keys stay as they are: %s", error)
            return None
        if not ring.follows(self.ring):
            _log.error("node 'keys' of topology %r was replaced, not rotated: the keys stay as they are", topology)
            return None
        before, self.ring, self.version = self.ring, ring, node.version
        return before if before != ring else None
