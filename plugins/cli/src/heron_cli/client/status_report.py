"""All that ``heron status`` says, as one value: for people `heron_cli.view.status_text` renders it."""

from __future__ import annotations

from dataclasses import dataclass

from heron.errors import HeronError, StateError, UsageError
from heron.ipc.status import TopologyStatus
from heron.spi.scheduler import ContainerStatus, JobLink, SchedulerState
from heron.spi.statemgr import NodeKind, StateManager
from heron.state_nodes.execution_state import ExecutionState
from heron.state_nodes.scheduler_location import SchedulerJob, decode_scheduler_location
from heron_cli.commands.remote_options import Remote

__all__ = ["StatusReport", "status_report"]


@dataclass(frozen=True, slots=True)
class StatusReport:
    """`run` is None where all that is left of a topology is its last status; `job` and `containers` are the
    scheduler's view, `handle` its name for the job ("": it has none of its own). Where it knows of none here, `handle`
    and `links` are what it has noted in the state.
    """

    status: TopologyStatus
    run: ExecutionState | None = None
    job: SchedulerState | None = None
    containers: tuple[ContainerStatus, ...] = ()
    links: tuple[JobLink, ...] = ()
    handle: str = ""


def status_report(remote: Remote) -> StatusReport:
    """The status of a topology that runs, or the last one of a topology that ran.

    Raises:
        HeronError: as `RemoteTopology` does, when there is neither.
    """
    topology = remote.topology
    try:
        status = topology.status()
    except UsageError:
        report = topology.last_report()
        if report is None:
            raise
        return StatusReport(report)
    try:
        job = remote.scheduler.status(topology.name).of(topology.run.topology_id)
        links = remote.scheduler.links(topology.name)
    except HeronError:
        return StatusReport(status, topology.run)  # what the topology manager says is what matters
    if job.state is SchedulerState.ABSENT:
        noted = _noted_job(remote.statemgr, topology.run)
        pages = tuple(JobLink(title, url) for title, url in noted.links.items())
        return StatusReport(status, topology.run, job.state, links=pages, handle=noted.handle)
    return StatusReport(status, topology.run, job.state, job.containers, links, job.handle)


def _noted_job(statemgr: StateManager, run: ExecutionState) -> SchedulerJob:
    """The job as its scheduler wrote it into the state; empty when it wrote none, or the node cannot be read."""
    try:
        node = statemgr.get(NodeKind.SCHEDULER_LOCATION, run.topology)
        location = decode_scheduler_location(node.value, run.topology) if node else None
    except StateError:
        return SchedulerJob()
    if location is None or location.job is None or location.run.topology_id != run.topology_id:
        return SchedulerJob()
    return location.job
