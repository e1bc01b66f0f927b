"""Opens a client of a topology manager from the node that holds the topology's keys."""

from __future__ import annotations

from heron.ipc.keys import Speaker
from heron.ipc.query import TManagerClient
from heron.state_nodes.topology_keys import decode_keys

__all__ = ["open_tmanager_client"]


def open_tmanager_client(endpoint: str, keys: bytes, topology: str, *, control: bool) -> TManagerClient:
    """Return a client with the control key or else with the read-only key; `keys` is the value of the node KEYS.

    Raises:
        StateError: when the node cannot be read.
    """
    speaker = Speaker.CONTROL if control else Speaker.READER
    return TManagerClient(endpoint, decode_keys(keys, topology).connecting_as(speaker))
