"""The names of topologies, and the state nodes that say which run has a name and how its last one ended."""

from __future__ import annotations

import re

from heron.errors import UsageError
from heron.spi.statemgr import NodeKind, StateManager
from heron.state_nodes.execution_state import ExecutionState, decode_execution_state
from heron.state_nodes.report import LastReport, decode_report

__all__ = ["check_name", "is_name", "read_report", "read_run", "topologies"]

_NAME = re.compile(r"[A-Za-z0-9_-]{1,200}")  # the state manager's rule


def is_name(text: str) -> bool:
    """Return whether the text is a valid name of a topology."""
    return _NAME.fullmatch(text) is not None


def check_name(topology: str) -> None:
    """Refuse an invalid name of a topology.

    Raises:
        UsageError: when the name has other characters, or is too long.
    """
    if not is_name(topology):
        msg = f"{topology[:220]!r} is not a topology name: use 1 to 200 of the characters A-Z a-z 0-9 _ -"
        raise UsageError(msg)


def topologies(statemgr: StateManager) -> tuple[str, ...]:
    """Return the names of all topologies that exist, have left a node, or are being changed by a command.

    Raises:
        StateError: when the state manager does not answer.
    """
    kinds = (NodeKind.EXECUTION_STATE, NodeKind.TOPOLOGY, NodeKind.REPORT, NodeKind.LOCK)
    return tuple(sorted({name for kind in kinds for name in statemgr.list(kind)}))


def read_run(statemgr: StateManager, topology: str) -> ExecutionState | None:
    """Return the execution state of a topology; None when there is no such node.

    Raises:
        StateError: when the node cannot be read; names it.
    """
    node = statemgr.get(NodeKind.EXECUTION_STATE, topology)
    return decode_execution_state(node.value, topology) if node else None


def read_report(statemgr: StateManager, topology: str) -> LastReport | None:
    """Return the last report of that name; None when there is none. Raises as `read_run` does."""
    node = statemgr.get(NodeKind.REPORT, topology)
    return decode_report(node.value, topology) if node else None
