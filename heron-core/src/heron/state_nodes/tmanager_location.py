"""The node TMANAGER_LOCATION: where the leading topology manager listens.

The leader holds the node. The version of the node is the leader's epoch.
"""

from __future__ import annotations

from typing import Final

import msgspec

from heron.spi.statemgr import NodeKind
from heron.state_nodes.document import decode_node, encode_node

__all__ = ["TManagerLocation", "decode_tmanager_location", "encode_tmanager_location"]

_FORMAT: Final = 1


class TManagerLocation(msgspec.Struct, frozen=True):
    """The socket, the run and the server's public key; for people also the process and its container.

    `server_key` is empty in a location that an earlier version wrote.
    """

    endpoint: str
    topology_id: str
    pid: int
    host: str
    container_id: int = 0
    server_key: str = ""


def encode_tmanager_location(location: TManagerLocation) -> bytes:
    """The value of the node."""
    return encode_node(location, _FORMAT)


def decode_tmanager_location(data: bytes, topology: str) -> TManagerLocation:
    """The inverse of `encode_tmanager_location`.

    Raises:
        NewerFormatError: when a newer version of heron-core wrote the node.
        StateError: when the node holds something else.
    """
    node = (NodeKind.TMANAGER_LOCATION, topology)
    return decode_node(data, TManagerLocation, _FORMAT, node, "location of the topology manager")
