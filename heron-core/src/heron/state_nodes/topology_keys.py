"""The node KEYS: the CURVE keys of one run of a topology, with their secrets.

While the keys rotate, the node also has their successors (`KeyRing`). A reader of one set reads the present one.
"""

from __future__ import annotations

from typing import Final

from heron.ipc.keys import KeyRing, TopologyKeys
from heron.spi.statemgr import NodeKind
from heron.state_nodes.document import decode_node, encode_node

__all__ = ["decode_key_ring", "decode_keys", "encode_keys"]

_FORMAT: Final = 1


def encode_keys(keys: TopologyKeys) -> bytes:
    """The value of the node, secrets included."""
    return encode_node(keys, _FORMAT)


def decode_keys(data: bytes, topology: str) -> TopologyKeys:
    """The inverse of `encode_keys`.

    Raises:
        NewerFormatError: when a newer version of heron-core wrote the node.
        StateError: when the node holds something else; the message does not show what it holds.
    """
    return decode_node(data, TopologyKeys, _FORMAT, (NodeKind.KEYS, topology), "keys")


def decode_key_ring(data: bytes, topology: str) -> KeyRing:
    """All sets of the node, which may have been written as one set. Raises as `decode_keys` does."""
    return decode_node(data, KeyRing, _FORMAT, (NodeKind.KEYS, topology), "keys")
