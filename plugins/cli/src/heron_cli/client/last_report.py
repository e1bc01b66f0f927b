"""What stays of a run that is over: its last status and who submitted it, in the node REPORT, for a day.

The topology manager writes the status when the topology ends; the command that tidies up adds the rest. Both are one
JSON object, so that a reader of a status reads either.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from heron.errors import HeronError, StateError
from heron.ipc.status import TopologyStatus, decode_status
from heron_cli.client.execution_state import ExecutionState

__all__ = ["KEPT_S", "LastReport", "decode_last_report", "encode_last_report"]

KEPT_S = 24 * 3600.0
"""A report is removed by the first command that meets it after so long."""


@dataclass(frozen=True, slots=True)
class LastReport:
    """A run that is over; `run` is missing while nobody has tidied up, or where its state could not be read."""

    status: TopologyStatus
    run: ExecutionState | None = None
    containers: int = 0
    tasks: int = 0

    def expired(self, now_s: float) -> bool:
        """Whether it is older than a day; `now_s` is wall-clock seconds."""
        return now_s - (self.status.ended_at_s or self.status.started_at_s) > KEPT_S


class _Additions(msgspec.Struct):
    run: ExecutionState | None = None
    containers: int = 0
    task_count: int = 0


def encode_last_report(report: LastReport) -> bytes:
    """The report as one JSON object: a status with additions."""
    additions = _Additions(report.run, report.containers, report.tasks)
    return msgspec.json.encode({**msgspec.to_builtins(report.status), **msgspec.to_builtins(additions)})


def decode_last_report(data: bytes, topology: str) -> LastReport:
    """The inverse of `encode_last_report`; also reads the bare status of a topology manager.

    Raises:
        StateError: when the node holds something else.
    """
    try:
        status = decode_status(data)
        more = msgspec.json.decode(data, type=_Additions)
    except (HeronError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        msg = (
            f"node reports/{topology}: cannot be read as the last report of topology {topology!r}: {error}; it was "
            f"changed by hand, or written by another version of heron-core; `heron kill {topology}` removes it"
        )
        raise StateError(msg) from error
    return LastReport(status, more.run, more.containers, more.task_count)
