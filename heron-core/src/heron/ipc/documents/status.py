"""The status of a topology, which the topology manager returns: frozen values, JSON on the wire and in the report.

All counts are totals over every incarnation of a task. `*_at_s` are wall-clock seconds, and None for an event that has
not happened yet. The parts of a status are structs of msgspec: a topology may have thousands of tasks, and structs
decode, encode and compare faster than dataclasses. Their classes are also made faster: every command waits for them.
"""

from __future__ import annotations

import functools
from dataclasses import MISSING, dataclass, fields
from typing import Any, get_type_hints

import msgspec

from heron.spi.typed_values import decode_document, decode_json

__all__ = [
    "CheckpointStatus",
    "CodeStatus",
    "ComponentStatus",
    "Culprit",
    "KeysStatus",
    "LeaderStatus",
    "LongCallStatus",
    "ProcessStatus",
    "SinkOutage",
    "StandbyStatus",
    "StatusReader",
    "TaskStatus",
    "TopologyStatus",
    "Unreached",
    "UpdateStatus",
    "UserErrorStatus",
    "decode_status",
    "encode_status",
]


class ComponentStatus(msgspec.Struct, frozen=True):
    """Sums over the tasks of a component; `kind` is ``spout`` or ``bolt``, `latency_s` the mean time in user code.

    `reported_tasks` is the number of tasks in the counts, also of removed ones. A new topology manager does not know
    all tasks at once, and a task that it learns adds all that it ever counted. 0: an older one does not say.
    `shed` is the number of tuples that a spout has shed (``topology.shed``); they are not among the others.
    """

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
    reported_tasks: int = 0
    shed: int = 0


class TaskStatus(msgspec.Struct, frozen=True, gc=False):
    """One task: its container, its incarnation, and why it last failed ("" if it did not)."""

    task_id: int
    component: str
    container_id: int
    state: str
    incarnation: int
    restarts: int = 0
    last_error: str = ""


class ProcessStatus(msgspec.Struct, frozen=True, gc=False):
    """One process, as its executor reports it; executors are included. `pid` is 0 if the process does not run.

    `state` is ``running``, ``restarting`` or ``down`` (given up). `restarts` counts since the start of the container,
    and for an executor since the start of the topology. `last_error` is why it last died ("" if it did not). `task_id`
    is 0 for the engine's own processes.
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


class LeaderStatus(msgspec.Struct, frozen=True):
    """The topology manager that leads, since when (wall-clock seconds), and its epoch, which grows with each leader."""

    container_id: int
    pid: int
    host: str
    epoch: int
    since_s: float


class StandbyStatus(msgspec.Struct, frozen=True):
    """A topology manager that waits to lead; `state` and `pid` are as in `ProcessStatus`."""

    container_id: int
    pid: int
    host: str
    state: str


class Culprit(msgspec.Struct, frozen=True):
    """A task whose full buffer throttles the spouts that feed it: since when, and why."""

    task_id: int
    component: str
    container_id: int
    since_s: float
    cause: str = ""


class LongCallStatus(msgspec.Struct, frozen=True):
    """A task that has been in one call of user code, `function`, since then; `place` is the line where it was found."""

    task_id: int
    component: str
    function: str
    place: str
    since_s: float


class SinkOutage(msgspec.Struct, frozen=True):
    """A metrics sink that delivers nothing in one container: for how long, and why ("" where that is not known)."""

    sink: str
    container_id: int
    outage_s: float
    reason: str = ""


class Unreached(msgspec.Struct, frozen=True):
    """A silent stream manager: its container, its observer (`by`; 0: the topology manager), and the duration."""

    container_id: int
    by: int
    silent_s: float


class CheckpointStatus(msgspec.Struct, frozen=True):
    """The checkpoints of a topology that takes them.

    `number` is the newest one that was ordered, `complete` the newest complete one of this run, 0 for none; the next
    five fields describe it. `align_s` is the longest time that a task held data back for it. `failed` counts those
    that failed under this leader; `failed_number` is the last one (0 if it is not known), and `last_error` says why.
    `source` is the id of the checkpoint that the last restore loaded, and `last_loss` the reason of that restore.
    `waits_for` names what the one under way waits for.
    """

    number: int = 0
    complete: int = 0
    completed_at_s: float = 0.0
    duration_s: float = 0.0
    size_bytes: int = 0
    align_s: float = 0.0
    slowest_task: int = 0
    failed: int = 0
    last_error: str = ""
    restores: int = 0
    source: str = ""
    last_loss: str = ""
    restored_at_s: float = 0.0
    waits_for: str = ""
    failed_number: int = 0


class UpdateStatus(msgspec.Struct, frozen=True):
    """The newest update: `phase` is ``prepare`` or ``switch``, or how it ended: ``complete`` or ``withdrawn``.

    `target` is the id of the packing plan that was asked for. `waits_for` names what the phase waits for, or why the
    update was withdrawn.
    """

    number: int
    phase: str
    target: str
    added: tuple[int, ...] = ()
    removed: tuple[int, ...] = ()
    waits_for: str = ""


class CodeStatus(msgspec.Struct, frozen=True):
    """The newest change of the code, to the package with this URI.

    `phase` is ``change``, ``canary`` or ``return``, or how it ended: ``complete`` or ``returned``. `tasks` run the new
    code. `reason` says why it returns.
    """

    package: str
    phase: str
    components: tuple[str, ...] = ()
    tasks: tuple[int, ...] = ()
    reason: str = ""


class KeysStatus(msgspec.Struct, frozen=True):
    """Containers whose stream managers have these sets of keys, oldest first, named by the server's public keys.

    `moved` is whether all their sessions use the newest of these keys.
    """

    server_keys: tuple[str, ...]
    moved: bool
    containers: tuple[int, ...]


class UserErrorStatus(msgspec.Struct, frozen=True):
    """An error of user code: one call, class of exception and line of a component, named by `error`.

    `tasks` has the count of each task that raised it. `newest_at_s` is exact to an export period. A topology manager
    that leads later than the first failure knows no message, no traceback and no `first_at_s`, and `newest_at_s` only
    after the next failure.
    """

    component: str
    error: str
    count: int
    tasks: dict[int, int]
    first_at_s: float | None = None
    newest_at_s: float | None = None
    exception: str = ""
    place: str = ""
    message: str = ""
    trace: str = ""

    def has(self, text: str) -> bool:
        """Whether a text of `TopologyStatus.errors` is about this error, in any task."""
        parts = f"component {self.component!r}, task ", f" raised {self.exception}: ", f"; at {self.place}; "
        return bool(self.place) and all(each in text for each in parts)


@dataclass(frozen=True, slots=True)
class TopologyStatus:
    """A topology at one moment; `state` is a value of `heron.planner.physical_plan.TopologyState`."""

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
    update: UpdateStatus | None = None
    checkpoints: CheckpointStatus | None = None
    long_calls: tuple[LongCallStatus, ...] = ()
    keys: tuple[KeysStatus, ...] = ()
    user_errors: tuple[UserErrorStatus, ...] = ()
    code: CodeStatus | None = None


def encode_status(status: TopologyStatus) -> bytes:
    """The status as JSON."""
    return msgspec.json.encode(status)


def decode_status(data: bytes) -> TopologyStatus:
    """The inverse of `encode_status`.

    Raises:
        RemoteProtocolError: when the bytes do not decode.
    """
    return decode_document(data, TopologyStatus, "a topology status")


_SELDOM_CHANGE: dict[str, Any] = {"tasks": tuple[TaskStatus, ...], "processes": tuple[ProcessStatus, ...]}


class StatusReader:
    """Decodes the statuses of one topology, one after the other.

    The tasks and the processes are nearly all of a status, and seldom change: what is equal is the same value again.
    """

    def __init__(self) -> None:
        self._former: dict[str, tuple[bytes, object]] = {}

    def read(self, data: bytes) -> TopologyStatus:
        """As `decode_status`."""
        try:
            values: dict[str, Any] = msgspec.structs.asdict(decode_json(data, _parts()))
            for name, kind in _SELDOM_CHANGE.items():
                raw, former = bytes(values[name]), self._former.get(name)
                if former is None or former[0] != raw:
                    former = self._former[name] = raw, decode_json(raw, kind)
                values[name] = former[1]
        except msgspec.MsgspecError:
            return decode_status(data)  # raises, and says where the document is wrong
        return TopologyStatus(**values)


@functools.cache
def _parts() -> type[msgspec.Struct]:
    """A status whose lists of tasks and processes are JSON yet; made when it is needed, because it costs time."""
    types = get_type_hints(TopologyStatus)
    required = [(each.name, types[each.name]) for each in fields(TopologyStatus) if each.default is MISSING]
    others = [
        (each.name, msgspec.Raw, msgspec.Raw(b"[]"))
        if each.name in _SELDOM_CHANGE
        else (each.name, types[each.name], each.default)
        for each in fields(TopologyStatus)
        if each.default is not MISSING
    ]
    return msgspec.defstruct("StatusParts", [*required, *others], frozen=True)
