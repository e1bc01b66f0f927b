"""The node EXECUTION_STATE: who submitted a topology, when, and what has to be removed at its end.

A submission writes this node first, and the removal of a run removes it last. So it leads to everything that a killed
command has left behind.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from heron.errors import StateError
from heron.spi.statemgr import NodeKind
from heron.state_nodes.document import decode_node, encode_node, node_name

__all__ = ["ExecutionState", "decode_execution_state", "encode_execution_state", "kill_command"]

_FORMAT: Final = 1
_DEFAULT_PROFILE = "local"  # the profile of a command without --profile


@dataclass(frozen=True, slots=True)
class ExecutionState:
    """One run of a topology; `submitted_at_s` is wall-clock seconds.

    `package_uri` is "" until the upload is done. `version` is that of the heron-core that submitted the topology. A
    topology with `deactivated` starts paused. `more_packages` are the URIs of packages with new code.
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
    more_packages: tuple[str, ...] = ()

    @property
    def kill_command(self) -> str:
        """The command that ends the run and removes what it left, for the host that submitted it."""
        return kill_command(self.topology, self.profile)


def kill_command(topology: str, profile: str) -> str:
    """The command that removes a topology, for users of that profile."""
    chosen = "" if profile == _DEFAULT_PROFILE else f" --profile {profile}"
    return f"heron kill {topology}{chosen}"


def encode_execution_state(state: ExecutionState) -> bytes:
    """The value of the node."""
    return encode_node(state, _FORMAT)


def decode_execution_state(data: bytes, topology: str, kind: NodeKind = NodeKind.EXECUTION_STATE) -> ExecutionState:
    """The inverse of `encode_execution_state`; also reads the copy in a node of another `kind`.

    Raises:
        NewerFormatError: when a newer version of heron-core wrote the node.
        StateError: when the node holds something else, or the state of another topology.
    """
    state = decode_node(data, ExecutionState, _FORMAT, (kind, topology), "execution state")
    if state.topology != topology:
        msg = (
            f"{node_name(kind, topology)}: belongs to topology {state.topology!r}; the node was changed by hand; "
            f"`heron kill {topology}` removes it"
        )
        raise StateError(msg)
    return state
