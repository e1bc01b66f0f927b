"""The operations of ``/api/v1``: one table routes requests and makes the OpenAPI document."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from heron.errors import known, nearest
from heron_cli.client import HealthRecords
from heron_service_tracker.answers.answer_parts import (
    cluster_item,
    component_items,
    container_items,
    exception_items,
    page,
    plans_of,
    selected_metrics,
    shown_config,
    stream_manager_items,
    task_items,
    topology_item,
)
from heron_service_tracker.answers.answers import (
    ClustersAnswer,
    EventItem,
    EventsAnswer,
    ExceptionsAnswer,
    LogicalPlanAnswer,
    MetricsAnswer,
    PackingPlanAnswer,
    PhysicalPlanAnswer,
    PlanVersionItem,
    PlanVersionsAnswer,
    TopologiesAnswer,
    TopologyAnswer,
)
from heron_service_tracker.answers.checkpoint_answers import CheckpointsAnswer, checkpoint_item
from heron_service_tracker.answers.flow import flow, task_rows
from heron_service_tracker.answers.flow_answers import FlowAnswer, TasksAnswer
from heron_service_tracker.answers.health_answer import HealthDecisionsAnswer, decision_items
from heron_service_tracker.observed.observed import ObservedTopology, age_s
from heron_service_tracker.paths.parameters import Parameter, Values
from heron_service_tracker.request_errors import UnknownPlaceError
from heron_service_tracker.watches.observations import Observations, Reading

__all__ = ["API", "OPERATIONS", "Operation", "check_component"]

API = "/api/v1"

_TOPOLOGY = f"{API}/clusters/{{cluster}}/topologies/{{topology}}"
_LIMIT = Parameter("limit", "the greatest number of items", "integer", 100, 1, 1000)
_OFFSET = Parameter("offset", "the number of items to leave out", "integer", 0, 0, 10**9)
_COMPONENT = Parameter("component", "only this component")

Answer = Callable[[Observations, str, str, Values], msgspec.Struct]


@dataclass(frozen=True, slots=True)
class Operation:
    """One path, which is only read. `answer` takes the cluster and the topology of the path, "" where it has none.

    The answer of one that `needs_metrics` waits for them when nobody has looked at them lately.
    """

    path: str
    summary: str
    answer: Answer
    answer_type: type[msgspec.Struct]
    parameters: tuple[Parameter, ...] = ()
    needs_metrics: bool = False


def _clusters(observations: Observations, _cluster: str, _topology: str, _values: Values) -> ClustersAnswer:
    now_s = observations.clock.monotonic_s()
    items = tuple(cluster_item(each, now_s) for each in observations.clusters())
    return ClustersAnswer(items, max((each.age_s or 0.0 for each in items), default=0.0))


def _topologies(observations: Observations, _cluster: str, _topology: str, values: Values) -> TopologiesAnswer:
    now_s = observations.clock.monotonic_s()
    wanted, state = values.text("cluster"), values.text("state")
    clusters = (observations.cluster(wanted),) if wanted else observations.clusters()
    found = [
        each
        for cluster in clusters
        for _, each in sorted(cluster.topologies.items())
        if not state or each.entry.state == state
    ]
    shown, after = page(found, values.integer("offset"), values.integer("limit"))
    items = tuple(topology_item(each, now_s) for each in shown)
    away = tuple(cluster_item(each, now_s) for each in clusters if each.error)
    ages = [age_s(each.observed_at_s, now_s) for each in clusters if each.observed_at_s is not None]
    return TopologiesAnswer(items, len(found), after, away, max(ages, default=0.0))


def _topology(observations: Observations, cluster: str, topology: str, _values: Values) -> TopologyAnswer:
    found = observations.topology(cluster, topology)
    item = topology_item(found, observations.clock.monotonic_s())
    return TopologyAnswer(item, found.status, item.age_s, item.error)


def _logical_plan(observations: Observations, cluster: str, topology: str, _values: Values) -> LogicalPlanAnswer:
    found = observations.topology(cluster, topology)
    plans = plans_of(found)
    config = shown_config(plans.definition.config)
    return LogicalPlanAnswer(topology, component_items(plans), config, *_freshness(observations, found))


def _packing_plan(observations: Observations, cluster: str, topology: str, _values: Values) -> PackingPlanAnswer:
    found = observations.topology(cluster, topology)
    plans = plans_of(found)
    return PackingPlanAnswer(plans.packing.id, container_items(plans), *_freshness(observations, found))


def _physical_plan(observations: Observations, cluster: str, topology: str, _values: Values) -> PhysicalPlanAnswer:
    found = observations.topology(cluster, topology)
    plans = plans_of(found)
    version = plans.physical.version if plans.physical else 0
    state = plans.physical.state.value if plans.physical else ""
    managers, tasks = stream_manager_items(plans), task_items(found, plans)
    return PhysicalPlanAnswer(version, state, managers, tasks, *_freshness(observations, found))


def _plan_versions(observations: Observations, cluster: str, topology: str, values: Values) -> PlanVersionsAnswer:
    found = observations.topology(cluster, topology)
    versions = found.versions[::-1]
    shown, after = page(versions, values.integer("offset"), values.integer("limit"))
    items = tuple(
        PlanVersionItem(each.version, each.epoch, each.packing, each.state, each.at_s, each.changes) for each in shown
    )
    return PlanVersionsAnswer(items, len(versions), after, *_freshness(observations, found))


def _metrics(observations: Observations, cluster: str, topology: str, values: Values) -> MetricsAnswer:
    found = observations.looked_at(cluster, topology, Reading.ALL)
    component, task_id = values.text("component"), values.integer("task")
    check_component(found, component)
    _check_task(found, task_id)
    of_process = (each for each in found.metrics if not (process := values.text("process")) or each.process == process)
    rows = selected_metrics(of_process, component, task_id, values.texts("name"))
    items, after = page(rows, values.integer("offset"), values.integer("limit"))
    return MetricsAnswer(items, len(rows), after, *_freshness_of(observations, found, found.metrics_at_s))


def _flow(observations: Observations, cluster: str, topology: str, _values: Values) -> FlowAnswer:
    found = observations.looked_at(cluster, topology, Reading.FIGURES)
    return FlowAnswer(*flow(found), *_freshness_of(observations, found, found.figures_at_s))


def _tasks(observations: Observations, cluster: str, topology: str, values: Values) -> TasksAnswer:
    found = observations.looked_at(cluster, topology, Reading.FIGURES)
    component = values.text("component")
    check_component(found, component)
    rows = task_rows(found, component)
    items, after = page(rows, values.integer("offset"), values.integer("limit"))
    return TasksAnswer(items, len(rows), after, *_freshness_of(observations, found, found.figures_at_s))


def _events(observations: Observations, cluster: str, topology: str, values: Values) -> EventsAnswer:
    found = observations.topology(cluster, topology)
    after = values.integer("after")
    kept = [each for each in found.events if each.number > after]
    first = kept[0].number if kept else found.events_seen + 1
    shown = kept[: values.integer("limit")]
    items = tuple(EventItem(each.number, each.at_s, each.kind, each.subject, each.text) for each in shown)
    last = items[-1].number if items else min(after, found.events_seen)
    return EventsAnswer(items, last, max(0, first - after - 1), *_freshness(observations, found))


def _checkpoints(observations: Observations, cluster: str, topology: str, values: Values) -> CheckpointsAnswer:
    found = observations.topology(cluster, topology)
    rows = tuple(map(checkpoint_item, reversed(found.checkpoints)))
    items, after = page(rows, values.integer("offset"), values.integer("limit"))
    return CheckpointsAnswer(items, len(rows), after, *_freshness(observations, found))


def _health(observations: Observations, cluster: str, topology: str, values: Values) -> HealthDecisionsAnswer:
    found = observations.topology(cluster, topology)
    rows = decision_items(found)
    items, after = page(rows, values.integer("offset"), values.integer("limit"))
    kept = found.health or HealthRecords(found.entry.id)
    return HealthDecisionsAnswer(
        kept.mode, kept.paused, kept.problem, items, len(rows), after, *_freshness(observations, found)
    )


def _exceptions(observations: Observations, cluster: str, topology: str, values: Values) -> ExceptionsAnswer:
    found = observations.topology(cluster, topology)
    component = values.text("component")
    check_component(found, component)
    rows = exception_items(found, component)
    items, after = page(rows, values.integer("offset"), values.integer("limit"))
    return ExceptionsAnswer(items, len(rows), after, *_freshness(observations, found))


def _freshness(observations: Observations, topology: ObservedTopology) -> tuple[float, str]:
    return age_s(topology.observed_at_s, observations.clock.monotonic_s()), topology.error


def _freshness_of(observations: Observations, topology: ObservedTopology, read_at_s: float) -> tuple[float, str]:
    """The age of the metrics or figures, or of the status while there are none yet."""
    at_s = read_at_s if topology.metrics else topology.observed_at_s
    return age_s(at_s, observations.clock.monotonic_s()), topology.error


def check_component(topology: ObservedTopology, component: str) -> None:
    """Raise `UnknownPlaceError` when the topology is known to have no such component; "" is all of them."""
    names = [each.name for each in topology.status.components] if topology.status else []
    if component and topology.status and component not in names:
        near = nearest(component, names)
        msg = f"topology {topology.name!r} has no component {component!r}{near}; known: {known(names)}"
        raise UnknownPlaceError(msg)


def _check_task(topology: ObservedTopology, task_id: int) -> None:
    if task_id and topology.status and all(each.task_id != task_id for each in topology.status.tasks):
        msg = f"topology {topology.name!r} has no task {task_id}"
        raise UnknownPlaceError(msg)


OPERATIONS = (
    Operation(f"{API}/clusters", "Lists the clusters", _clusters, ClustersAnswer),
    Operation(
        f"{API}/topologies",
        "Lists the topologies of all clusters",
        _topologies,
        TopologiesAnswer,
        (
            Parameter("cluster", "only this cluster"),
            Parameter("state", "only topologies in this state"),
            _LIMIT,
            _OFFSET,
        ),
    ),
    Operation(_TOPOLOGY, "Shows a topology and its status", _topology, TopologyAnswer),
    Operation(f"{_TOPOLOGY}/logical-plan", "Shows components and streams", _logical_plan, LogicalPlanAnswer),
    Operation(f"{_TOPOLOGY}/packing-plan", "Shows containers and resources", _packing_plan, PackingPlanAnswer),
    Operation(f"{_TOPOLOGY}/physical-plan", "Shows where tasks are", _physical_plan, PhysicalPlanAnswer),
    Operation(
        f"{_TOPOLOGY}/plan-versions",
        "Lists the versions of the plans, newest first",
        _plan_versions,
        PlanVersionsAnswer,
        (_LIMIT, _OFFSET),
    ),
    Operation(f"{_TOPOLOGY}/flow", "Shows the graph with its rates", _flow, FlowAnswer),
    Operation(
        f"{_TOPOLOGY}/tasks",
        "Shows what each task does",
        _tasks,
        TasksAnswer,
        (_COMPONENT, _LIMIT, _OFFSET),
    ),
    Operation(
        f"{_TOPOLOGY}/metrics",
        "Shows the newest metrics of tasks and processes",
        _metrics,
        MetricsAnswer,
        (
            _COMPONENT,
            Parameter("task", "only this task", "integer", None, 1, 10**9),
            Parameter("process", "only this process, such as stmgr-1"),
            Parameter("name", "only the metric of this name", many=True),
            _LIMIT,
            _OFFSET,
        ),
        needs_metrics=True,
    ),
    Operation(
        f"{_TOPOLOGY}/events",
        "Lists what has changed, oldest first",
        _events,
        EventsAnswer,
        (Parameter("after", "only events with a greater number", "integer", 0, 0, 10**15 - 1), _LIMIT),
    ),
    Operation(
        f"{_TOPOLOGY}/checkpoints",
        "Lists the complete and failed checkpoints that were seen, newest first",
        _checkpoints,
        CheckpointsAnswer,
        (_LIMIT, _OFFSET),
    ),
    Operation(
        f"{_TOPOLOGY}/health",
        "Lists the decisions of the health manager, newest first",
        _health,
        HealthDecisionsAnswer,
        (_LIMIT, _OFFSET),
    ),
    Operation(
        f"{_TOPOLOGY}/exceptions",
        "Lists the newest errors",
        _exceptions,
        ExceptionsAnswer,
        (_COMPONENT, _LIMIT, _OFFSET),
    ),
)
"""Every operation whose answer is one document; `live_stream` serves the events."""
