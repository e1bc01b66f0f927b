"""Everything that ``heron status`` reports, as one value. `heron_cli.view.status_text` renders it for people."""

from __future__ import annotations

from dataclasses import dataclass

from heron.errors import HeronError, StateError, UsageError
from heron.ipc.documents.status import TopologyStatus
from heron.spi.scheduler import ContainerStatus, JobLink, Scheduler, SchedulerState
from heron.spi.statemgr import NodeKind, StateManager
from heron.state_nodes.execution_state import ExecutionState
from heron.state_nodes.scheduler_location import SchedulerJob, decode_scheduler_location
from heron_cli.topologies.running.remote_topology import RemoteTopology

__all__ = ["StatusReport", "status_report"]

_BEGUN_S = 2.0  # a person who asks soon after a submission still gets the status


@dataclass(frozen=True, slots=True)
class StatusReport:
    """The status of a topology, with its run and its job.

    `run` is None when only the last report of an ended run is left. `job` and `containers` are the scheduler's view,
    and `handle` is the scheduler's name for the job, "" without one. When the scheduler knows no job here, `handle` and
    `links` are what it has stored in the state manager. `scheduler_error` is why the scheduler gave no answer, "" when
    it did.
    """

    status: TopologyStatus
    run: ExecutionState | None = None
    job: SchedulerState | None = None
    containers: tuple[ContainerStatus, ...] = ()
    links: tuple[JobLink, ...] = ()
    handle: str = ""
    scheduler_error: str = ""


def status_report(statemgr: StateManager, scheduler: Scheduler, topology: RemoteTopology) -> StatusReport:
    """Return the status of a running topology, or the last status of a topology that has ended.

    Raises:
        HeronError: as `RemoteTopology` does, when there is neither.
    """
    try:
        status = topology.status(begun_s=_BEGUN_S)
    except UsageError:
        report = topology.last_report()
        if report is None:
            raise
        return StatusReport(report)
    try:
        job = topology.job()
        links = scheduler.links(topology.name)
    except HeronError as error:  # the topology manager's answer is what matters
        return StatusReport(status, topology.run, scheduler_error=str(error))
    if job.state is SchedulerState.ABSENT:
        stored = _stored_job(statemgr, topology.run)
        pages = tuple(JobLink(title, url) for title, url in stored.links.items())
        return StatusReport(status, topology.run, job.state, links=pages, handle=stored.handle)
    return StatusReport(status, topology.run, job.state, job.containers, links, job.handle)


def _stored_job(statemgr: StateManager, run: ExecutionState) -> SchedulerJob:
    """Return the job as its scheduler wrote it into the state; empty when it wrote none, or the node is unreadable."""
    try:
        node = statemgr.get(NodeKind.SCHEDULER_LOCATION, run.topology)
        location = decode_scheduler_location(node.value, run.topology) if node else None
    except StateError:
        return SchedulerJob()
    if location is None or location.job is None or location.run.topology_id != run.topology_id:
        return SchedulerJob()
    return location.job
