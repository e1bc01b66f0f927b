"""The end of a topology, as a command that waits for something else sees it."""

from __future__ import annotations

from heron.errors import TopologyFailedError
from heron.ipc.documents.status import TopologyStatus
from heron.planner.physical_plan import ENDED_STATES

__all__ = ["ENDED", "check_not_ended"]

ENDED = frozenset(state.value for state in ENDED_STATES)
"""The states of a `TopologyStatus` that it never leaves."""


def check_not_ended(status: TopologyStatus) -> None:
    """Refuse to wait for a topology that has ended.

    Raises:
        TopologyFailedError: when it has; the message has its state and the reason.
    """
    if status.state in ENDED:
        why = f": {status.error}" if status.error else ""
        msg = f"topology {status.topology!r} is {status.state} meanwhile{why}"
        raise TopologyFailedError(msg)
