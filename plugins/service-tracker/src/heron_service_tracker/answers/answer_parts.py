"""Makes answers from what was observed. Pure: values in, values out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

import msgspec

from heron.api.api_constants import TOPOLOGY_INSPECT_TUPLES
from heron.api.config import merged_config, setting
from heron.driver_kit.redaction import hide_url_passwords, names_secret
from heron_cli.client import MetricsRow, TopologyPlans, UserErrorStatus
from heron_service_tracker.answers.answers import (
    ClusterItem,
    ComponentItem,
    ContainerItem,
    ExceptionItem,
    InputItem,
    LinkItem,
    StreamItem,
    StreamManagerItem,
    TaskItem,
    TaskPlaceItem,
    TopologyItem,
)
from heron_service_tracker.answers.health_answer import health_sentence
from heron_service_tracker.answers.trouble import troubles
from heron_service_tracker.observed.observed import ObservedCluster, ObservedTopology, age_s
from heron_service_tracker.request_errors import NotYetKnownError

__all__ = [
    "cluster_item",
    "component_items",
    "components_with_tuples",
    "container_items",
    "exception_items",
    "page",
    "plans_of",
    "selected_metrics",
    "shown_config",
    "stream_manager_items",
    "task_items",
    "topology_item",
]

_HIDDEN = "(hidden)"
_TASK = re.compile(r"component '([^']{1,400})', task (\d{1,9})")
_RAISED = re.compile(r" raised (\w{1,200}): ")
_PLACE = re.compile(r".*; at ([^;\n]{1,400}, line \d{1,9})(?: or after [^;\n]*)?;", re.DOTALL)
_ENDS = 2000  # characters of a text in which class and line are looked for: an exception may have megabytes
_PAGE = re.compile(r"https?://")  # other schemes, such as that of scripts, are no pages
_LONGEST_VALUE = 1000  # characters of a configuration value; a pickled stage has megabytes

T = TypeVar("T")


def page(items: Sequence[T], offset: int, limit: int) -> tuple[tuple[T, ...], int | None]:
    """Return a page and the offset of the next one; None at the end."""
    after = offset + limit
    return tuple(items[offset:after]), after if after < len(items) else None


def cluster_item(cluster: ObservedCluster, now_s: float) -> ClusterItem:
    """A cluster in a list."""
    age = None if cluster.observed_at_s is None else age_s(cluster.observed_at_s, now_s)
    return ClusterItem(cluster.name, len(cluster.topologies), age, cluster.error)


def topology_item(topology: ObservedTopology, now_s: float) -> TopologyItem:
    """A topology in a list. Its rate is that of its spouts."""
    entry, status = topology.entry, topology.status
    spouts = [each for each in status.components if each.kind == "spout"] if status else []
    return TopologyItem(
        cluster=topology.cluster,
        name=entry.name,
        id=entry.id,
        state=entry.state,
        role=entry.role,
        env=entry.env,
        user=entry.user,
        since_s=entry.since_s,
        containers=entry.containers,
        tasks=entry.tasks,
        spouts=tuple(each.name for each in spouts),
        rate_per_s=sum(each.rate_per_s for each in spouts),
        culprits=len(status.backpressure) if status else 0,
        errors=entry.errors,
        trouble=troubles(topology),
        health=health_sentence(topology),
        links=tuple(LinkItem(each.title, each.url) for each in topology.links if _PAGE.match(each.url)),
        age_s=age_s(topology.observed_at_s, now_s),
        error=topology.error,
    )


def plans_of(topology: ObservedTopology) -> TopologyPlans:
    """The plans of a topology.

    Raises:
        NotYetKnownError: when they were not read yet, or the topology had ended before they were.
    """
    if topology.plans is None:
        why = topology.error or f"the topology is {topology.entry.state}"
        msg = f"the plans of topology {topology.name!r} are not known: {why}"
        raise NotYetKnownError(msg)
    return topology.plans


def component_items(plans: TopologyPlans) -> tuple[ComponentItem, ...]:
    """The components with the parallelism of the packing plan, which an update changes."""
    parallelism = plans.packing.parallelism()
    return tuple(
        ComponentItem(
            each.name,
            each.kind.value,
            each.entry,
            parallelism.get(each.name, each.parallelism),
            tuple(StreamItem(output.name, output.fields) for output in each.outputs),
            tuple(
                InputItem(source.component, source.stream, source.grouping.kind.value, source.grouping.fields)
                for source in each.inputs
            ),
            shown_config(each.config),
        )
        for each in plans.definition.components
    )


def shown_config(config: Mapping[str, object]) -> dict[str, str]:
    """The configuration as text, by key, without secrets; long values are cut."""
    return {key: _as_text(_without_secrets(config[key], key)) for key in sorted(config)}


def _without_secrets(value: object, key: str = "") -> object:
    """Hide values whose key names a secret, at any depth, and passwords in URLs."""
    if names_secret(key):
        return _HIDDEN
    if isinstance(value, str):
        return hide_url_passwords(value, _HIDDEN)
    if isinstance(value, Mapping):
        return {name: _without_secrets(each, str(name)) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_without_secrets(each) for each in value]
    return value


def components_with_tuples(plans: TopologyPlans | None) -> frozenset[str]:
    """Return the components whose present configuration lets people see their tuples."""
    if plans is None:
        return frozenset()
    definition = plans.physical.topology if plans.physical else plans.definition
    configs = {each.name: merged_config(definition.config, each.config) for each in definition.components}
    return frozenset(name for name, config in configs.items() if setting(config, TOPOLOGY_INSPECT_TUPLES) is True)


def container_items(plans: TopologyPlans) -> tuple[ContainerItem, ...]:
    """The containers of the packing plan."""
    return tuple(
        ContainerItem(
            container.container_id,
            tuple(
                TaskPlaceItem(each.task_id, each.component, each.component_index, *each.resource.amounts())
                for each in container.instances
            ),
            *container.required.amounts(),
        )
        for container in plans.packing.containers
    )


def stream_manager_items(plans: TopologyPlans) -> tuple[StreamManagerItem, ...]:
    """The stream managers of the physical plan."""
    managers = plans.physical.stmgrs if plans.physical else ()
    return tuple(
        StreamManagerItem(each.container_id, each.host, each.endpoint, each.pid, each.incarnation) for each in managers
    )


def task_items(topology: ObservedTopology, plans: TopologyPlans) -> tuple[TaskItem, ...]:
    """The tasks of the physical plan with their states."""
    status = topology.status
    states = {each.task_id: each for each in status.tasks} if status else {}
    processes = {each.task_id: each for each in status.processes if each.task_id} if status else {}
    found = []
    for each in plans.physical.tasks if plans.physical else ():
        state, process = states.get(each.task_id), processes.get(each.task_id)
        found.append(
            TaskItem(
                each.task_id,
                each.component,
                each.component_index,
                each.container_id,
                state.state if state else "",
                state.restarts if state else 0,
                process.pid if process else 0,
                process.host if process else "",
                state.last_error if state else "",
            )
        )
    return tuple(found)


def selected_metrics(
    rows: Iterable[MetricsRow], component: str, task_id: int, names: Sequence[str]
) -> list[MetricsRow]:
    """The rows of a component, task and names; "", 0 and no name mean all."""
    wanted, found = frozenset(names), list(rows)
    if task_id:
        found = [row for row in found if row.task_id == task_id]
    if component:
        found = [row for row in found if row.component == component]
    if wanted:
        found = [row for row in found if row.name in wanted]
    return found


def exception_items(topology: ObservedTopology, component: str = "") -> list[ExceptionItem]:
    """The errors of the status, newest first; those without a time have that at which the tracker saw them first.

    What one line of a component raised is one item, with the tasks that raised it.
    """
    status = topology.status
    if status is None:
        return []
    counted = sorted(status.user_errors, key=lambda each: -(each.newest_at_s or 0.0))
    found = [_counted_item(each) for each in counted]
    seen_at_s = {each.text: each.at_s for each in reversed(topology.events) if each.kind == "error"}
    by_line: dict[tuple[str, ...], ExceptionItem] = {}
    for text in reversed(status.errors):
        if not any(each.has(text) for each in counted):
            item = _text_item(text, seen_at_s.get(text))
            key = (item.component, item.exception, item.place) if item.place else (text,)
            first = by_line.setdefault(key, item)
            first.tasks.update({item.task_id: 0} if item.task_id else {})
    return [each for each in (*found, *by_line.values()) if not component or each.component == component]


def _counted_item(error: UserErrorStatus) -> ExceptionItem:
    task_id = min(error.tasks, default=0)
    match = _TASK.search(error.message)
    return ExceptionItem(
        error.message or error.error,
        error.component,
        int(match[2]) if match else task_id,
        error.first_at_s,
        error.exception,
        error.place,
        error.count,
        error.newest_at_s,
        error.tasks,
        error.trace,
    )


def _text_item(text: str, first_at_s: float | None) -> ExceptionItem:
    match = _TASK.search(text)
    name, task_id = (match[1], int(match[2])) if match else ("", 0)
    raised, place = _RAISED.search(text[:_ENDS]), _PLACE.match(text[-_ENDS:])
    where = (raised[1], place[1] if place else "") if raised else ("", "")
    return ExceptionItem(text, name, task_id, first_at_s, *where, tasks={})


def _as_text(value: object) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}… ({len(text)} characters)"
