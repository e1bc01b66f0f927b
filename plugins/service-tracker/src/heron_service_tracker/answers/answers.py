"""The answers of the API: typed values, from which the OpenAPI document is made.

Each answer has `age_s`, the seconds since its values were read, and `error`, why newer ones could not be read ("" when
they could). `*_at_s` are wall-clock seconds.
"""

from __future__ import annotations

import msgspec

from heron_cli.client import MetricsRow, TopologyStatus

__all__ = [
    "ClusterItem",
    "ClustersAnswer",
    "ComponentItem",
    "ContainerItem",
    "EventItem",
    "EventsAnswer",
    "ExceptionItem",
    "ExceptionsAnswer",
    "HealthAnswer",
    "HistoryAnswer",
    "InputItem",
    "LinkItem",
    "LogicalPlanAnswer",
    "MetricsAnswer",
    "PackingPlanAnswer",
    "PhysicalPlanAnswer",
    "PlanVersionItem",
    "PlanVersionsAnswer",
    "PointItem",
    "SeriesItem",
    "StreamItem",
    "StreamManagerItem",
    "TaskItem",
    "TaskPlaceItem",
    "TopologiesAnswer",
    "TopologyAnswer",
    "TopologyItem",
    "TroubleItem",
]


class HealthAnswer(msgspec.Struct, frozen=True):
    """The tracker answers; `clusters_away` are those whose state managers do not."""

    version: str
    clusters: int
    clusters_away: tuple[str, ...]
    topologies: int
    age_s: float = 0.0


class ClusterItem(msgspec.Struct, frozen=True):
    """A cluster: one profile. `age_s` is None until it has answered once."""

    name: str
    topologies: int
    age_s: float | None
    error: str


class ClustersAnswer(msgspec.Struct, frozen=True):
    """Every cluster of the tracker; `age_s` is the greatest age."""

    items: tuple[ClusterItem, ...]
    age_s: float


class LinkItem(msgspec.Struct, frozen=True):
    """A page of the scheduler; `url` begins with ``http``."""

    title: str
    url: str


class TroubleItem(msgspec.Struct, frozen=True):
    """Something that is wrong, as a sentence, and what it concerns: "" and 0 where that is nothing.

    `kind` is ``run``, ``away``, ``process-down``, ``process-restarting``, ``back-pressure``, ``behind``,
    ``long-call``, ``container-unreached``, ``sink-outage``, ``checkpoint``, ``memory``, ``failures`` or ``more``.
    """

    kind: str
    text: str
    component: str = ""
    task_id: int = 0
    container_id: int = 0


class TopologyItem(msgspec.Struct, frozen=True):
    """A topology in a list.

    `age_s` is the age of its status, its rate and its culprits; the other values come from the list of its cluster.
    `spouts` are the names of its spouts. `trouble` says in sentences what is wrong, the gravest first. `health` says
    what its health manager advises or does now, and why; "" if that is nothing. `links` are pages of its scheduler
    about it, such as those of Spark.
    """

    cluster: str
    name: str
    id: str
    state: str
    role: str
    env: str
    user: str
    since_s: float | None
    containers: int
    tasks: int
    spouts: tuple[str, ...]
    rate_per_s: float
    culprits: int
    errors: tuple[str, ...]
    trouble: tuple[TroubleItem, ...]
    health: str
    links: tuple[LinkItem, ...]
    age_s: float
    error: str


class TopologiesAnswer(msgspec.Struct, frozen=True):
    """A page of the topologies, by cluster and name. `away` are clusters whose list is old, with the reason."""

    items: tuple[TopologyItem, ...]
    total: int
    next_offset: int | None
    away: tuple[ClusterItem, ...]
    age_s: float


class TopologyAnswer(msgspec.Struct, frozen=True):
    """A topology with its whole status; `status` is None until the topology has answered once."""

    topology: TopologyItem
    status: TopologyStatus | None
    age_s: float
    error: str


class StreamItem(msgspec.Struct, frozen=True):
    """An output stream and its fields."""

    name: str
    fields: tuple[str, ...]


class InputItem(msgspec.Struct, frozen=True):
    """A subscription of a bolt; `fields` are the key fields of its grouping."""

    component: str
    stream: str
    grouping: str
    fields: tuple[str, ...]


class ComponentItem(msgspec.Struct, frozen=True):
    """A spout or bolt. Values of configuration keys that name a secret are hidden."""

    name: str
    kind: str
    entry: str
    parallelism: int
    outputs: tuple[StreamItem, ...]
    inputs: tuple[InputItem, ...]
    config: dict[str, str]


class LogicalPlanAnswer(msgspec.Struct, frozen=True):
    """The components in the order of declaration."""

    topology: str
    components: tuple[ComponentItem, ...]
    config: dict[str, str]
    age_s: float
    error: str


class PlanVersionItem(msgspec.Struct, frozen=True):
    """A version of the physical plan that the tracker read.

    `at_s` is when, in wall-clock seconds. `changes` says in sentences how it differs from the version before it here.
    """

    version: int
    epoch: int
    packing: str
    state: str
    at_s: float
    changes: tuple[str, ...]


class PlanVersionsAnswer(msgspec.Struct, frozen=True):
    """A page of the versions, the newest first."""

    items: tuple[PlanVersionItem, ...]
    total: int
    next_offset: int | None
    age_s: float
    error: str


class TaskPlaceItem(msgspec.Struct, frozen=True):
    """A task of the packing plan, with the resources that it asks for."""

    task_id: int
    component: str
    component_index: int
    cpu: float
    ram_bytes: int
    disk_bytes: int


class ContainerItem(msgspec.Struct, frozen=True):
    """A container of the packing plan, with the resources that it requires."""

    container_id: int
    tasks: tuple[TaskPlaceItem, ...]
    cpu: float
    ram_bytes: int
    disk_bytes: int


class PackingPlanAnswer(msgspec.Struct, frozen=True):
    """The containers and their tasks. Container 0 has none and is not in the plan."""

    id: str
    containers: tuple[ContainerItem, ...]
    age_s: float
    error: str


class StreamManagerItem(msgspec.Struct, frozen=True):
    """The stream manager of a container."""

    container_id: int
    host: str
    endpoint: str
    pid: int
    incarnation: int


class TaskItem(msgspec.Struct, frozen=True):
    """A task of the physical plan with its present state; `state` is "" until the topology has answered."""

    task_id: int
    component: str
    component_index: int
    container_id: int
    state: str
    restarts: int
    pid: int
    host: str
    last_error: str


class PhysicalPlanAnswer(msgspec.Struct, frozen=True):
    """The physical plan: where the stream managers and tasks are."""

    version: int
    state: str
    stream_managers: tuple[StreamManagerItem, ...]
    tasks: tuple[TaskItem, ...]
    age_s: float
    error: str


class MetricsAnswer(msgspec.Struct, frozen=True):
    """A page of the newest metrics, by task. `MetricsRow` explains the values."""

    items: tuple[MetricsRow, ...]
    total: int
    next_offset: int | None
    age_s: float
    error: str


class EventItem(msgspec.Struct, frozen=True):
    """A change that the tracker saw. `number` grows by one; `subject` is a task or process, "" for the topology."""

    number: int
    at_s: float
    kind: str
    subject: str
    text: str


class EventsAnswer(msgspec.Struct, frozen=True):
    """Events after a number, oldest first. `dropped` counts those after it that are no longer kept."""

    items: tuple[EventItem, ...]
    last: int
    dropped: int
    age_s: float
    error: str


class PointItem(msgspec.Struct, frozen=True):
    """One step: its start, the mean of its values and the greatest. Counters are per second."""

    at_s: int
    value: float
    most: float


class SeriesItem(msgspec.Struct, frozen=True):
    """A metric of a component (`task_id` 0) or of a task; its points are oldest first, and a hole has none."""

    component: str
    task_id: int
    metric: str
    points: tuple[PointItem, ...]


class HistoryAnswer(msgspec.Struct, frozen=True):
    """The history of a topology, which may have ended.

    `step_s` is the length of a point. `events` are those of that time, oldest first, the newest 1,000; their numbers
    are those of the history. `error` says why nothing is recorded now, and `prometheus_error` why values of the
    Prometheus are missing.
    """

    start_s: int
    end_s: int
    step_s: int
    series: tuple[SeriesItem, ...]
    events: tuple[EventItem, ...]
    age_s: float
    error: str
    prometheus_error: str = ""


class ExceptionItem(msgspec.Struct, frozen=True):
    """An error of the topology; `component` is "" when the error does not name one.

    `exception` is the class that user code raised and `place` its line, ``FILE, line N``; "" for other errors. `text`
    and `task_id` are those of its first report. `count` is how often it was raised, `tasks` how often by which task,
    and `newest_at_s` the last time; None or 0 where that is not counted. `trace` is its first traceback.
    """

    text: str
    component: str
    task_id: int
    first_at_s: float | None
    exception: str
    place: str
    count: int | None = None
    newest_at_s: float | None = None
    tasks: dict[int, int] = {}
    trace: str = ""


class ExceptionsAnswer(msgspec.Struct, frozen=True):
    """The errors, the newest first: each line of user code once."""

    items: tuple[ExceptionItem, ...]
    total: int
    next_offset: int | None
    age_s: float
    error: str
