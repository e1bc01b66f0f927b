"""Observations of a running topology: its plan, its status and its metrics become plain values."""

from __future__ import annotations

import threading
import zlib
from collections.abc import Callable, Iterator, Mapping
from sys import intern

from heron.api.api_constants import (
    TOPOLOGY_MAX_SPOUT_PENDING,
    TOPOLOGY_OBJECTIVES,
    TOPOLOGY_RELIABILITY_MODE,
    TopologyReliabilityMode,
)
from heron.api.config import merged_config, setting
from heron.api.definition import ComponentDefinition, GroupingKind, InputDefinition
from heron.clock import monotonic_s, wall_s
from heron.errors import StateError
from heron.ipc.documents.metrics_table import MetricsSeries, MetricsValue
from heron.ipc.documents.status import TopologyStatus
from heron.planner.key_group import key_groups_of
from heron.planner.logical_plan import logical_plan
from heron.planner.physical_plan import PhysicalPlan, PlanIndex
from heron.spi.health_section import ComponentBounds
from heron.spi.health_values import ComponentShape, Observation, Sample, Subscription, TopologyShape
from heron_cli.topologies.running.remote_topology import RemoteTopology
from heron_health_manager.observing.bounds import bounded
from heron_health_manager.observing.restart_history import RestartHistory

__all__ = ["SampleReader", "observation_of", "observe", "shape_of"]

_Owner = tuple[str, int, int, str]  # component, task, container and process of samples

_UNDIVIDED = frozenset({GroupingKind.ALL, GroupingKind.LOWEST})
_PERIOD_S = 1.0  # the default export period of metrics
_CHANGING = frozenset({"prepare", "switch"})


def observe(topology: RemoteTopology, look_back_s: float) -> Iterator[Observation]:
    """Yields an observation about once per second, for `look_back_s` seconds; at least two.

    Raises:
        StateError: when the topology has no physical plan yet.
    """
    start_s, pause, history = monotonic_s(), threading.Event(), RestartHistory()
    while True:
        reader = SampleReader()
        topology.read_task_metrics((), reader)
        status, plan = topology.status(), _physical_plan(topology)
        now_s = monotonic_s()
        yield observation_of(plan, status, tuple(reader.samples), now_s, history=history)
        if now_s - start_s >= look_back_s:
            return
        pause.wait(_PERIOD_S)


def _physical_plan(topology: RemoteTopology) -> PhysicalPlan:
    plan = topology.plans().physical
    if plan is None:
        msg = f"topology {topology.name!r} has no physical plan yet; it is starting, try again"
        raise StateError(msg)
    return plan


def observation_of(
    plan: PhysicalPlan,
    status: TopologyStatus,
    samples: tuple[Sample, ...],
    at_s: float,
    bounds: Mapping[str, ComponentBounds] | None = None,
    history: RestartHistory | None = None,
) -> Observation:
    """What is known of a topology at a moment; `bounds` are those of a profile, and `history` is of earlier moments."""
    update = status.update
    shape = shape_of(plan, changing=update is not None and update.phase in _CHANGING)
    if bounds:
        shape = bounded(shape, bounds)
    silent: dict[int, float] = {}
    for each in status.unreached:
        silent[each.container_id] = max(each.silent_s, silent.get(each.container_id, 0.0))
    restarts = {task.task_id: task.restarts for task in status.tasks}
    recent = history.recent(restarts, at_s, wall_s() - status.started_at_s) if history else {}
    culprits = frozenset(culprit.task_id for culprit in status.backpressure)
    return Observation(at_s, shape, samples, restarts, culprits, silent, recent)


def shape_of(plan: PhysicalPlan, *, changing: bool = False) -> TopologyShape:
    """The components of a plan in the order of the data, with the tasks that data is routed to."""
    index = PlanIndex(plan)
    groups = key_groups_of(plan.topology)
    config = plan.topology.config
    components = tuple(_component(node.component, index, groups, config) for node in logical_plan(plan.topology).nodes)
    mode = setting(config, TOPOLOGY_RELIABILITY_MODE)
    return TopologyShape(
        plan.topology.name,
        components,
        _version(plan, components),
        changing=changing or plan.update is not None,
        loses=mode == TopologyReliabilityMode.ATMOST_ONCE,
        objectives=_texts(config.get(TOPOLOGY_OBJECTIVES, ())),
    )


def _texts(value: object) -> tuple[str, ...]:
    """A list of text; anything else as one text, which its reader refuses."""
    return tuple(map(str, value)) if isinstance(value, list | tuple) else (str(value),)


def _version(plan: PhysicalPlan, components: tuple[ComponentShape, ...]) -> int:
    """A number that changes with the tasks and their key groups; that of the plan also grows with each checkpoint."""
    places = [(each.name, sorted(each.tasks.items()), plan.key_owners.get(each.name)) for each in components]
    return zlib.crc32(repr(places).encode())


def _component(
    definition: ComponentDefinition, index: PlanIndex, groups: int, config: Mapping[str, object]
) -> ComponentShape:
    tasks = {task: index.tasks[task].container_id for task in index.tasks_of(definition.name)}
    keyed = any(each.grouping.kind is GroupingKind.FIELDS for each in definition.inputs)
    inputs = tuple(map(_subscription, definition.inputs))
    of_keys = groups if keyed else None
    most_pending = setting(merged_config(config, definition.config), TOPOLOGY_MAX_SPOUT_PENDING)
    return ComponentShape(
        definition.name,
        definition.kind.value,
        tasks,
        inputs,
        most=of_keys,
        groups=of_keys,
        most_pending=most_pending if isinstance(most_pending, int) and not inputs else None,
        keys_moved=keyed and definition.name in index.plan.key_owners,
    )


def _subscription(definition: InputDefinition) -> Subscription:
    kind = definition.grouping.kind
    divides = kind not in _UNDIVIDED
    return Subscription(definition.component, definition.stream, divides, lowest=kind is GroupingKind.LOWEST)


class SampleReader:
    """Makes a sample of each value: of a task, or of a process of the engine, which is called ``NAME-CONTAINER``."""

    def __init__(self) -> None:
        self.samples: list[Sample] = []

    def of_owner(self, component: str, task_id: int, process: str) -> _Owner:
        """See `MetricsReader`."""
        name, _, number = process.rpartition("-")
        if task_id or not number.isdigit():
            return component, task_id, 0, process
        return component, task_id, int(number), intern(name)

    def of_series(self, series: MetricsSeries) -> Callable[[_Owner, MetricsValue], None]:
        """See `MetricsReader`."""
        name, labels, add = series.name, series.labels, self.samples.append

        def take(owner: _Owner, each: MetricsValue) -> None:
            add(Sample(name, each.value, *owner, labels, each.rate_per_s, each.p99))

        return take
