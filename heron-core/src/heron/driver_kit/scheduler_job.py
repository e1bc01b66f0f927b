"""Writes the handle and the pages of a job into the state of its topology, for commands on other machines."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from heron.driver_kit.large_values import open_statemgr
from heron.errors import HeronError, StateError
from heron.spi.scheduler import ContainerSpec
from heron.spi.statemgr import NodeKind, StateManager
from heron.state_nodes.document import node_name
from heron.state_nodes.scheduler_location import SchedulerJob, with_job

__all__ = ["publish_job", "write_job"]

_log = logging.getLogger(__name__)


def publish_job(spec: ContainerSpec, handle: str, links: Mapping[str, str]) -> None:
    """Opens the topology's state manager and calls `write_job`. A failure is logged; the job runs without it.

    Args:
        spec: any container of the job.
        handle: the scheduler's name for the job.
        links: the addresses of the pages that show the job, by title.
    """
    try:
        statemgr = open_statemgr(spec.statemgr)
        try:
            write_job(statemgr, spec, handle, links)
        finally:
            statemgr.close()
    except HeronError as error:
        _log.warning("the job is not written into the state, so other machines do not show its pages: %s", error)


def write_job(statemgr: StateManager, spec: ContainerSpec, handle: str, links: Mapping[str, str]) -> None:
    """Adds the handle and links to the node SCHEDULER_LOCATION of this run. A later call replaces them.

    Raises:
        StateError: when the node is missing, damaged or from another run, for example because the topology was killed.
    """
    node = statemgr.get(NodeKind.SCHEDULER_LOCATION, spec.topology)
    if node is None:
        msg = f"{node_name(NodeKind.SCHEDULER_LOCATION, spec.topology)}: does not exist; the topology was killed"
        raise StateError(msg)
    value = with_job(node.value, spec.topology, spec.topology_id, SchedulerJob(handle, dict(links)))
    statemgr.set(NodeKind.SCHEDULER_LOCATION, spec.topology, value, expected=node.version)
