"""The node REPORT: the last status of a run that is over, and who submitted it.

The topology manager writes the status when the topology ends. The command that removes the run adds the rest. Both
are fields of one JSON object, so a reader of a status reads this node too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgspec

from heron.ipc.documents.status import TopologyStatus
from heron.spi.statemgr import NodeKind
from heron.state_nodes.document import decode_node
from heron.state_nodes.execution_state import ExecutionState

__all__ = ["KEPT_S", "LastReport", "decode_report", "encode_report"]

_FORMAT: Final = 1

KEPT_S = 24 * 3600.0
"""The first command that finds an older report removes it."""


@dataclass(frozen=True, slots=True)
class LastReport:
    """A run that is over. `run` is missing until a command has removed the run, or if its state could not be read."""

    status: TopologyStatus
    run: ExecutionState | None = None
    containers: int = 0
    tasks: int = 0

    def expired(self, now_s: float) -> bool:
        """Whether the run ended more than a day ago; `now_s` is wall-clock seconds."""
        return now_s - (self.status.ended_at_s or self.status.started_at_s) > KEPT_S


class _Additions(msgspec.Struct):
    run: ExecutionState | None = None
    containers: int = 0
    task_count: int = 0


def encode_report(report: LastReport) -> bytes:
    """The value of the node."""
    additions = _Additions(report.run, report.containers, report.tasks)
    fields = {**msgspec.to_builtins(report.status), **msgspec.to_builtins(additions)}
    return msgspec.json.encode({"format": _FORMAT, **fields})


def decode_report(data: bytes, topology: str) -> LastReport:
    """The inverse of `encode_report`; also reads the bare status that former versions wrote.

    Raises:
        NewerFormatError: when a newer version of heron-core wrote the node.
        StateError: when the node holds something else.
    """
    node = (NodeKind.REPORT, topology)
    status = decode_node(data, TopologyStatus, _FORMAT, node, "last report")
    more = decode_node(data, _Additions, _FORMAT, node, "last report")
    return LastReport(status, more.run, more.containers, more.task_count)
