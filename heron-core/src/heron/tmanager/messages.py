"""The messages that a topology manager receives: who may send them, and their values. Pure."""

from __future__ import annotations

from heron.checkpoints.manifest import decode_snapshot
from heron.errors import HeronError, RemoteProtocolError, Violation
from heron.ipc import control_pb2 as pb
from heron.ipc.frames.metrics_codec import record_of
from heron.ipc.keys import ClientKind
from heron.ipc.task_question import TASK_COMMANDS, TASK_QUESTIONS
from heron.planner.physical_plan import StreamManagerLocation
from heron.spi.metricsink import MetricsRecord
from heron.tmanager.leader.checkpoint_progress import CheckpointEvent, CheckpointReport
from heron.tmanager.leader.long_call_reports import LongCallReport
from heron.tmanager.leader.process_reports import ProcessReport
from heron.tmanager.leader.task_table import TaskEvent, TaskReport

__all__ = [
    "check_permission",
    "check_size",
    "checkpoint_report",
    "location_of",
    "long_call_report",
    "process_report",
    "task_report",
    "totals_of",
]

_QUESTIONS = frozenset({"metrics_request", "status_request", "traces_request"}) | TASK_QUESTIONS
_COMMANDS = (
    frozenset({"begin_update", "change_config", "change_state", "take_checkpoint", "withdraw_update"}) | TASK_COMMANDS
)

_QUESTION_MAX_BYTES = 64 * 1024  # the names of a metrics request take some kilobytes

_TASK_EVENTS: dict[int, TaskEvent] = {
    pb.TASK_PHASE_RUNNING: TaskEvent.INITIALISED,
    pb.TASK_PHASE_FAILED: TaskEvent.FAILED,
    pb.TASK_PHASE_ENDED: TaskEvent.ENDED,
    pb.TASK_PHASE_LEFT: TaskEvent.LEFT,
}
_PROCESS_EVENTS: dict[int, TaskEvent] = {
    pb.PROCESS_PHASE_STARTED: TaskEvent.STARTED,
    pb.PROCESS_PHASE_DIED: TaskEvent.DIED,
    pb.PROCESS_PHASE_GIVEN_UP: TaskEvent.GIVEN_UP,
}
_CHECKPOINT_EVENTS: dict[int, CheckpointEvent] = {
    pb.CHECKPOINT_PHASE_SAVED: CheckpointEvent.SAVED,
    pb.CHECKPOINT_PHASE_FAILED: CheckpointEvent.FAILED,
    pb.CHECKPOINT_PHASE_COMMITTED: CheckpointEvent.COMMITTED,
}


def check_size(kind: ClientKind, size_bytes: int) -> None:
    """Checks the size of a frame before it is decoded: a question is short, and a decoded message takes more memory.

    Raises:
        RemoteProtocolError: when the frame of the read-only key has more than 64 KiB.
    """
    if kind is ClientKind.READER and size_bytes > _QUESTION_MAX_BYTES:
        msg = f"frame of {size_bytes} bytes of the read-only key exceeds its limit of {_QUESTION_MAX_BYTES} bytes"
        raise RemoteProtocolError(msg, Violation.SIZE)


def check_permission(kind: ClientKind, body: str) -> None:
    """Checks that a key may send this message: members may send any, the control key commands and questions, the
    read-only key questions.

    Raises:
        HeronError: when the key may not.
    """
    if kind is ClientKind.MEMBER or body in _QUESTIONS:
        return
    if body not in _COMMANDS:
        msg = f"{body} is only for the topology's own processes, not for its {kind.value} key"
        raise HeronError(msg)
    if kind is not ClientKind.CONTROL:
        msg = f"{body} is not for the topology's read-only key; use its control key"
        raise HeronError(msg)


def location_of(hello: pb.StmgrHello) -> StreamManagerLocation:
    """The address in the registration of a stream manager."""
    return StreamManagerLocation(
        hello.container_id,
        hello.incarnation,
        hello.endpoint,
        hello.host,
        hello.pid,
        hello.server_key,
        hello.next_endpoint,
        hello.next_server_key,
    )


def task_report(report: pb.TaskReport) -> TaskReport:
    """The report of a task.

    Raises:
        RemoteProtocolError: when its phase is unknown.
    """
    event = _TASK_EVENTS.get(report.phase)
    if event is None:
        msg = f"task {report.task_id} reports phase {report.phase}, which is unknown"
        raise RemoteProtocolError(msg)
    return TaskReport(report.task_id, report.incarnation, event, report.error, restores=report.restores)


def checkpoint_report(report: pb.CheckpointReport) -> CheckpointReport:
    """The report of a task about a checkpoint.

    Raises:
        RemoteProtocolError: when its phase is unknown.
        CheckpointError: when its snapshot cannot be read.
    """
    event = _CHECKPOINT_EVENTS.get(report.phase)
    if event is None:
        msg = f"task {report.task_id} reports checkpoint phase {report.phase}, which is unknown"
        raise RemoteProtocolError(msg)
    snapshot = None
    if event is CheckpointEvent.SAVED:
        snapshot = decode_snapshot(report.snapshot, f"the snapshot of task {report.task_id}")
    return CheckpointReport(
        report.task_id, report.incarnation, report.restores, report.number, event, snapshot, report.error
    )


def long_call_report(report: pb.LongCall) -> LongCallReport:
    """The report of a task about a call of user code."""
    return LongCallReport(report.task_id, report.incarnation, report.on, report.function, report.place, report.lasts_s)


def totals_of(report: pb.TaskReport) -> MetricsRecord | None:
    """The last metrics of a task, which come with the report of its end."""
    return record_of(report.totals) if report.HasField("totals") else None


def process_report(report: pb.ProcessReport) -> ProcessReport:
    """The report of an executor about one of its processes.

    Raises:
        RemoteProtocolError: when the phase is unknown.
    """
    event = _PROCESS_EVENTS.get(report.phase)
    if event is None:
        msg = f"process {report.process!r} is reported in phase {report.phase}, which is unknown"
        raise RemoteProtocolError(msg)
    return ProcessReport(
        container_id=report.container_id,
        process=report.process,
        task_id=report.task_id,
        incarnation=report.incarnation,
        event=event,
        reason=report.reason,
        restarts=report.restarts,
        pid=report.pid,
    )
