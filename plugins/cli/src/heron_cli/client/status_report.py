"""All that ``heron status`` says, as one value: for people `heron_cli.view.status_text` renders it."""

from __future__ import annotations

from dataclasses import dataclass

from heron.errors import HeronError, UsageError
from heron.ipc.status import TopologyStatus
from heron.spi.scheduler import ContainerStatus, JobLink, SchedulerState
from heron_cli.client.execution_state import ExecutionState
from heron_cli.client.job_place import read_place
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
        place = read_place(remote.statemgr, topology.name, topology.run.topology_id)
        pages = tuple(JobLink(title, url) for title, url in place.links.items())
        return StatusReport(status, topology.run, job.state, links=pages, handle=place.handle)
    return StatusReport(status, topology.run, job.state, job.containers, links, job.handle)
