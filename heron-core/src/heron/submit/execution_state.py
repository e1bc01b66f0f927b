"""Who submitted a topology, when, and what has to be removed when it is gone: the node EXECUTION_STATE."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from heron.errors import StateError

__all__ = ["ExecutionState", "decode_execution_state", "encode_execution_state"]


@dataclass(frozen=True, slots=True)
class ExecutionState:
    """One run of a topology; `submitted_at_s` is wall-clock seconds."""

    topology: str
    topology_id: str
    submitted_at_s: float
    user: str
    host: str
    profile: str
    package_uri: str
    run_dir: str
    log_dir: str
    attached: bool


def encode_execution_state(state: ExecutionState) -> bytes:
    """The state as JSON."""
    return msgspec.json.encode(state)


def decode_execution_state(data: bytes, topology: str) -> ExecutionState:
    """The inverse of `encode_execution_state`.

    Raises:
        StateError: when the node holds something else.
    """
    try:
        return msgspec.json.decode(data, type=ExecutionState)
    except msgspec.MsgspecError as error:
        msg = f"execution state of topology {topology!r} cannot be read: {error}; remove the node"
        raise StateError(msg) from error
