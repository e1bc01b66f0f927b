"""Who submitted a topology, when, and what has to be removed when it is gone: the node EXECUTION_STATE.

It is the first node that a submission writes and the last that is removed, so whatever a killed command has left can
be traced from it. The node SCHEDULER_LOCATION holds a copy of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from heron.errors import StateError

__all__ = ["ExecutionState", "decode_execution_state", "encode_execution_state", "kill_command"]

_DEFAULT_PROFILE = "local"  # what the commands take without --profile


@dataclass(frozen=True, slots=True)
class ExecutionState:
    """One run of a topology; `submitted_at_s` is wall-clock seconds.

    `package_uri` is "" until the upload is done; `version` is that of the heron-core that submitted it. With
    `deactivated` it begins paused.
    """

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
    role: str = ""
    env: str = ""
    version: str = ""
    deactivated: bool = False

    @property
    def kill_command(self) -> str:
        """What ends it and removes what it left, as typed on its host."""
        return kill_command(self.topology, self.profile)


def kill_command(topology: str, profile: str) -> str:
    """What removes a topology, as typed by who uses that profile."""
    chosen = "" if profile == _DEFAULT_PROFILE else f" --profile {profile}"
    return f"heron kill {topology}{chosen}"


def encode_execution_state(state: ExecutionState) -> bytes:
    """The state as JSON."""
    return msgspec.json.encode(state)


def decode_execution_state(data: bytes, topology: str) -> ExecutionState:
    """The inverse of `encode_execution_state`.

    Raises:
        StateError: when the node holds something else.
    """
    try:
        state = msgspec.json.decode(data, type=ExecutionState)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        msg = (
            f"node executionstate/{topology}: the execution state of topology {topology!r} cannot be read: {error}; "
            f"it was changed by hand, or written by another version of heron-core; `heron kill {topology}` removes it"
        )
        raise StateError(msg) from error
    if state.topology != topology:
        msg = (
            f"node executionstate/{topology}: is of topology {state.topology!r}; it was changed by hand; "
            f"`heron kill {topology}` removes it"
        )
        raise StateError(msg)
    return state
