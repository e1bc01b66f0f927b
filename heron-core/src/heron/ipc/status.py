"""What a topology manager says of its topology to whoever asks: frozen values, JSON on the wire and in the report.

All counts are cumulative over every incarnation of a task; `*_at_s` are wall-clock seconds, `None` where the thing has
not happened yet.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from heron.errors import RemoteProtocolError

__all__ = [
    "ComponentStatus",
    "Culprit",
    "LeaderStatus",
    "ProcessStatus",
    "SinkOutage",
    "StandbyStatus",
    "TaskStatus",
    "TopologyStatus",
    "Unreached",
    "decode_status",
    "encode_status",
]


@dataclass(frozen=True, slots=True)
class ComponentStatus:
    """A component's sums over its tasks; `kind` is ``spout`` or ``bolt``, `latency_s` the mean time in user code."""

    name: str
    kind: str
    parallelism: int
    emitted: int = 0
    executed: int = 0
    acked: int = 0
    failed: int = 0
    rate_per_s: float = 0.0
    queue_bytes: int = 0
    latency_s: float = 0.0


@dataclass(frozen=True, slots=True)
class TaskStatus:
    """One task: where it runs, as which incarnation, and why it last failed ("" when it did not)."""

    task_id: int
    component: str
    container_id: int
    state: str
    incarnation: int
    restarts: int = 0
    last_error: str = ""


@dataclass(frozen=True, slots=True)
class ProcessStatus:
    """One process as its executor reports it, executors included; `pid` is 0 where it does not run.

    `state` is ``running``, ``restarting`` or ``down`` (given up); `restarts` counts since its container began, an
    executor's since the topology did. `last_error` says why it last died ("" when it did not). `task_id` is 0 for the
    engine's own processes.
    """

    container_id: int
    process: str
    state: str
    pid: int
    incarnation: int
    task_id: int = 0
    restarts: int = 0
    host: str = ""
    last_error: str = ""


@dataclass(frozen=True, slots=True)
class LeaderStatus:
    """The topology manager that leads: where, since when (wall-clock seconds), and its epoch, which grows from each
    leader to the next.
    """

    container_id: int
    pid: int
    host: str
    epoch: int
    since_s: float


@dataclass(frozen=True, slots=True)
class StandbyStatus:
    """A topology manager that waits to lead; `state` as that of a process, `pid` is 0 where it does not run."""

    container_id: int
    pid: int
    host: str
    state: str


@dataclass(frozen=True, slots=True)
class Culprit:
    """A task whose full buffer holds back its spouts, since when, and why it is full."""

    task_id: int
    component: str
    container_id: int
    since_s: float
    cause: str = ""


@dataclass(frozen=True, slots=True)
class SinkOutage:
    """A metrics sink that delivers nothing in one container: for how long, and why ("" where that is not known)."""

    sink: str
    container_id: int
    outage_s: float
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Unreached:
    """A container whose stream manager is not heard, by whom and for how long; `by` 0 is the topology manager."""

    container_id: int
    by: int
    silent_s: float


@dataclass(frozen=True, slots=True)
class TopologyStatus:
    """The whole topology at one moment; `state` is a value of `heron.planner.physical_plan.TopologyState`."""

    topology: str
    topology_id: str
    state: str
    started_at_s: float
    error: str = ""
    plan_version: int = 0
    first_tuple_at_s: float | None = None
    components: tuple[ComponentStatus, ...] = ()
    tasks: tuple[TaskStatus, ...] = ()
    backpressure: tuple[Culprit, ...] = ()
    errors: tuple[str, ...] = ()
    processes: tuple[ProcessStatus, ...] = ()
    ended_at_s: float | None = None
    outages: tuple[SinkOutage, ...] = ()
    leader: LeaderStatus | None = None
    standbys: tuple[StandbyStatus, ...] = ()
    unreached: tuple[Unreached, ...] = ()


def encode_status(status: TopologyStatus) -> bytes:
    """The status as JSON."""
    return msgspec.json.encode(status)


def decode_status(data: bytes) -> TopologyStatus:
    """The inverse of `encode_status`.

    Raises:
        RemoteProtocolError: when the bytes are not a status.
    """
    try:
        return msgspec.json.decode(data, type=TopologyStatus)
    except msgspec.MsgspecError as error:
        msg = f"a topology status of {len(data)} bytes cannot be read: {error}"
        raise RemoteProtocolError(msg) from error
