"""From the wire's messages to the leader's values."""

from __future__ import annotations

from heron.errors import RemoteProtocolError
from heron.ipc import control_pb2 as pb
from heron.ipc.metrics_codec import record_of
from heron.planner.physical_plan import StreamManagerLocation
from heron.spi.metricsink import MetricsRecord
from heron.tmanager.process_news import ProcessNews
from heron.tmanager.task_table import TaskEvent, TaskNews

__all__ = ["location_of", "process_news", "task_news", "totals_of"]

_TASK_EVENTS: dict[int, TaskEvent] = {
    pb.TASK_PHASE_RUNNING: TaskEvent.INITIALISED,
    pb.TASK_PHASE_FAILED: TaskEvent.FAILED,
    pb.TASK_PHASE_ENDED: TaskEvent.ENDED,
}
_PROCESS_EVENTS: dict[int, TaskEvent] = {
    pb.PROCESS_PHASE_STARTED: TaskEvent.STARTED,
    pb.PROCESS_PHASE_DIED: TaskEvent.DIED,
    pb.PROCESS_PHASE_GIVEN_UP: TaskEvent.GIVEN_UP,
}


def location_of(hello: pb.StmgrHello) -> StreamManagerLocation:
    """Where a stream manager says that it is."""
    return StreamManagerLocation(hello.container_id, hello.incarnation, hello.endpoint, hello.host, hello.pid)


def task_news(report: pb.TaskReport) -> TaskNews:
    """What a task reports.

    Raises:
        RemoteProtocolError: when its phase is unknown.
    """
    event = _TASK_EVENTS.get(report.phase)
    if event is None:
        msg = f"task {report.task_id} reports phase {report.phase}, which is unknown"
        raise RemoteProtocolError(msg)
    return TaskNews(report.task_id, report.incarnation, event, report.error)


def totals_of(report: pb.TaskReport) -> MetricsRecord | None:
    """The last metrics of a task, if they came with its report."""
    return record_of(report.totals) if report.HasField("totals") else None


def process_news(report: pb.ProcessReport) -> ProcessNews:
    """What an executor reports.

    Raises:
        RemoteProtocolError: when the phase is unknown.
    """
    event = _PROCESS_EVENTS.get(report.phase)
    if event is None:
        msg = f"process {report.process!r} is reported in phase {report.phase}, which is unknown"
        raise RemoteProtocolError(msg)
    return ProcessNews(
        container_id=report.container_id,
        process=report.process,
        task_id=report.task_id,
        incarnation=report.incarnation,
        event=event,
        reason=report.reason,
        restarts=report.restarts,
        pid=report.pid,
    )
