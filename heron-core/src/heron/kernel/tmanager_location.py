"""Where the topology manager of a topology is: the value of the state node TMANAGER_LOCATION, which it holds.

The node's version is the leader's epoch.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from heron.errors import StateError

__all__ = ["TManagerLocation", "decode_location", "encode_location"]


@dataclass(frozen=True, slots=True)
class TManagerLocation:
    """Its socket, the run it belongs to, and the process and its container, for people."""

    endpoint: str
    topology_id: str
    pid: int
    host: str
    container_id: int = 0


def encode_location(location: TManagerLocation) -> bytes:
    """The location as JSON."""
    return msgspec.json.encode(location)


def decode_location(data: bytes) -> TManagerLocation:
    """The inverse of `encode_location`.

    Raises:
        StateError: when the bytes are not a location.
    """
    try:
        return msgspec.json.decode(data, type=TManagerLocation)
    except msgspec.MsgspecError as error:
        msg = f"a topology manager's location of {len(data)} bytes cannot be read: {error}"
        raise StateError(msg) from error
