"""Opens a client of a topology manager from the node that holds the topology's keys."""

from __future__ import annotations

from heron.errors import UnreachableError
from heron.ipc.keys import ClientKind, keys_of_server
from heron.ipc.query import TManagerClient
from heron.state_nodes.topology_keys import decode_key_ring

__all__ = ["open_tmanager_client"]


def open_tmanager_client(
    endpoint: str, keys: bytes, topology: str, *, control: bool, server_key: str = ""
) -> TManagerClient:
    """Return a client with the control key or else with the read-only key; `keys` is the value of the node KEYS.

    `server_key` is the public key of the server, as its location says.

    Raises:
        StateError: when the node cannot be read.
        UnreachableError: when the topology manager has the keys before those of the node, and ends now.
    """
    ring = decode_key_ring(keys, topology)
    if server_key and server_key == ring.former:
        msg = f"the topology manager at {endpoint} starts again, with new keys"
        raise UnreachableError(msg)
    kind = ClientKind.CONTROL if control else ClientKind.READER
    known = [each.connecting_as(kind) for each in ring.sets()]
    return TManagerClient(endpoint, keys_of_server(server_key, known) or known[0])
