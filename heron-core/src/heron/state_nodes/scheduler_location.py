"""The node SCHEDULER_LOCATION: a copy of the execution state, and where other machines can see the job.

The copy is used when the execution state cannot be read. The scheduler adds the second part when it has started the
job. Both are fields of one JSON object, so a reader of an execution state reads this node too.
"""

from __future__ import annotations

from typing import Final

import msgspec

from heron.errors import StateError
from heron.spi.statemgr import NodeKind
from heron.state_nodes.document import decode_node, merged, node_name
from heron.state_nodes.execution_state import ExecutionState, decode_execution_state, encode_execution_state

__all__ = ["SchedulerJob", "SchedulerLocation", "decode_scheduler_location", "encode_scheduler_location", "with_job"]

_KIND: Final = NodeKind.SCHEDULER_LOCATION
_FORMAT: Final = 1


class SchedulerJob(msgspec.Struct, frozen=True):
    """The name that the scheduler has for the job ("": none), and the pages that show the job, by title."""

    handle: str = ""
    links: dict[str, str] = msgspec.field(default_factory=dict)


class SchedulerLocation(msgspec.Struct, frozen=True):
    """The run, and its job as soon as the scheduler has written it."""

    run: ExecutionState
    job: SchedulerJob | None = None


class _JobFields(msgspec.Struct, frozen=True):
    handle: str | None = None
    links: dict[str, str] = msgspec.field(default_factory=dict)


def encode_scheduler_location(run: ExecutionState) -> bytes:
    """The value of the node as a submission writes it."""
    return encode_execution_state(run)


def decode_scheduler_location(data: bytes, topology: str) -> SchedulerLocation:
    """The value of the node.

    Raises:
        NewerFormatError: when a newer version of heron-core wrote the node.
        StateError: when the node holds something else, or the state of another topology.
    """
    run = decode_execution_state(data, topology, _KIND)
    job = decode_node(data, _JobFields, _FORMAT, (_KIND, topology), "scheduler location")
    return SchedulerLocation(run, None if job.handle is None else SchedulerJob(job.handle, job.links))


def with_job(data: bytes, topology: str, topology_id: str, job: SchedulerJob) -> bytes:
    """The value of the node with the job of a run added or replaced; every other field stays as it is.

    Raises:
        NewerFormatError: when a newer version of heron-core wrote the node.
        StateError: when the node does not belong to that run, or holds something else.
    """
    run = decode_execution_state(data, topology, _KIND)
    if run.topology_id != topology_id:
        msg = f"{node_name(_KIND, topology)}: belongs to run {run.topology_id!r}, not to {topology_id!r}"
        raise StateError(msg)
    return merged(data, {"handle": job.handle, "links": job.links})
