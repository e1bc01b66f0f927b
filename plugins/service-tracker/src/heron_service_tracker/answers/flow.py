"""The graph of a topology with its rates, and a row for each task, from what was observed. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from heron_cli.client import TopologyPlans, TopologyStatus
from heron_service_tracker.answers.answer_parts import components_with_tuples, exception_items
from heron_service_tracker.observed.flow_items import FlowEdge, FlowNode, TaskRow
from heron_service_tracker.observed.observed import ObservedTopology
from heron_service_tracker.observed.task_figures import TaskFigures, median_without, share

__all__ = ["flow", "flow_edges", "flow_nodes", "task_rows"]

_NOTHING = TaskFigures()


def task_rows(topology: ObservedTopology, component: str = "") -> Sequence[TaskRow]:
    """The tasks of the status, by number, of one component or of all ("")."""
    rows = topology.made.tasks
    if rows is None:
        rows = topology.made.tasks = tuple(_task_rows(topology, topology.status) if topology.status else ())
    return [each for each in rows if each.component == component] if component else rows


def flow(topology: ObservedTopology) -> tuple[tuple[FlowNode, ...], tuple[FlowEdge, ...]]:
    """The components and the subscriptions of a topology."""
    if topology.made.flow is None:
        errors = Counter(each.component for each in exception_items(topology))
        topology.made.flow = flow_nodes(topology, errors), flow_edges(topology)
    return topology.made.flow


def _task_rows(topology: ObservedTopology, status: TopologyStatus) -> Iterator[TaskRow]:
    figures = topology.figures.by_task
    processes = {each.task_id: each for each in status.processes if each.task_id}
    culprits = {each.task_id: each.cause or "its buffer is full" for each in status.backpressure}
    calls = {each.task_id: f"{each.function}, at {each.place}" for each in status.long_calls}
    spouts = {each.name for each in status.components if each.kind == "spout"}
    with_tuples = components_with_tuples(topology.plans)
    for each in sorted(status.tasks, key=lambda task: task.task_id):
        known, process = figures.get(each.task_id, _NOTHING), processes.get(each.task_id)
        busy, busy_from = known.busy
        yield TaskRow(
            task_id=each.task_id,
            component=each.component,
            kind="spout" if each.component in spouts else "bolt",
            container_id=each.container_id,
            host=process.host if process else "",
            pid=process.pid if process else 0,
            state=each.state,
            restarts=each.restarts,
            rate_per_s=known.emit_per_s if each.component in spouts else known.execute_per_s,
            emit_per_s=known.emit_per_s,
            queue_bytes=known.queue_bytes,
            latency_p50_s=known.p50_s,
            latency_p99_s=known.p99_s,
            busy=busy,
            busy_from=busy_from,
            time=known.time,
            cores=known.cores,
            resident_bytes=known.resident_bytes,
            gc_share=known.gc_share,
            culprit=culprits.get(each.task_id, ""),
            long_call=calls.get(each.task_id, ""),
            last_error=each.last_error or (process.last_error if process else ""),
            shows_tuples=each.component in with_tuples,
        )


def flow_nodes(topology: ObservedTopology, errors_of: Mapping[str, int]) -> tuple[FlowNode, ...]:
    """The components of the status, in its order; `errors_of` counts the errors of each."""
    status = topology.status
    if status is None:
        return ()
    rows = defaultdict(list)
    for row in task_rows(topology):
        rows[row.component].append(row)
    all_resident = sorted(task.resident_bytes for of in rows.values() for task in of if task.resident_bytes is not None)
    held = _held_back(topology)
    found = []
    for each in status.components:
        tasks = rows[each.name]
        culprits = [culprit for culprit in status.backpressure if culprit.component == each.name]
        busy, most, busy_from = _busy_of(tasks)
        resident = [task.resident_bytes for task in tasks if task.resident_bytes is not None]
        found.append(
            FlowNode(
                name=each.name,
                kind=each.kind,
                parallelism=each.parallelism,
                running=sum(task.state == "running" for task in tasks),
                rate_per_s=each.rate_per_s,
                emit_per_s=sum(task.emit_per_s or 0.0 for task in tasks),
                queue_bytes=each.queue_bytes,
                latency_s=each.latency_s,
                failed=each.failed,
                busy=busy,
                busy_most=most,
                busy_from=busy_from,
                time=_mean_time(tasks),
                culprits=tuple(culprit.task_id for culprit in culprits),
                causes=tuple(dict.fromkeys(culprit.cause for culprit in culprits)),
                held_back_by=held.get(each.name, ()),
                restarts=sum(task.restarts for task in tasks),
                errors=errors_of.get(each.name, 0),
                resident_bytes=sum(resident) if resident else None,
                resident_bytes_most=max(resident, default=None),
                resident_bytes_others=median_without(all_resident, max(resident)) if resident else None,
            )
        )
    return tuple(found)


def flow_edges(topology: ObservedTopology) -> tuple[FlowEdge, ...]:
    """The subscriptions of the plans with what flows through each; none before the plans were read."""
    if topology.plans is None:
        return ()
    rates: dict[tuple[str, str, str], float] = {}
    figures = topology.figures
    for task_id, of_task in figures.by_task.items():
        for (source, stream), rate in of_task.from_stream.items():
            key = source, stream, figures.components[task_id]
            rates[key] = rates.get(key, 0.0) + rate
    return tuple(
        FlowEdge(
            source.component,
            each.name,
            source.stream,
            source.grouping.kind.value,
            rates.get((source.component, source.stream, each.name)),
        )
        for each in topology.plans.definition.components
        for source in each.inputs
    )


def _busy_of(tasks: list[TaskRow]) -> tuple[float | None, float | None, str]:
    """The mean and the greatest share of time with work, and how it is known."""
    shares = [task.busy for task in tasks if task.busy is not None]
    origins = {task.busy_from for task in tasks if task.busy is not None}
    if not shares:
        return None, None, ""
    return sum(shares) / len(shares), max(shares), "task-time" if origins == {"task-time"} else "processor"


def _mean_time(tasks: list[TaskRow]) -> dict[str, float]:
    """The mean share of each use, over the tasks that account for their time."""
    known = [task.time for task in tasks if task.time]
    uses = {use: None for time in known for use in time}
    return {use: share(sum(time.get(use, 0.0) for time in known) / len(known)) for use in uses}


def _held_back(topology: ObservedTopology) -> dict[str, tuple[str, ...]]:
    """The culprit components of each spout that feeds one of them, directly or through bolts."""
    status, plans = topology.status, topology.plans
    if status is None or plans is None:
        return {}
    spouts = {each.name for each in status.components if each.kind == "spout"}
    found: dict[str, list[str]] = {}
    for culprit in dict.fromkeys(each.component for each in status.backpressure):
        for name in sorted(_ancestors(plans, culprit) & spouts):
            found.setdefault(name, []).append(culprit)
    return {name: tuple(culprits) for name, culprits in found.items()}


def _ancestors(plans: TopologyPlans, name: str) -> set[str]:
    sources = {each.name: {source.component for source in each.inputs} for each in plans.definition.components}
    found: set[str] = set()
    waiting = [name]
    while waiting:
        new = sources.get(waiting.pop(), set()) - found
        found |= new
        waiting += new
    return found
