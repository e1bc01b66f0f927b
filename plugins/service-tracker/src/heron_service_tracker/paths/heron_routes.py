"""The paths of Heron Tracker, for scripts that were written for it. docs/tracker.md lists the differences.

Errors are a JSON text ``request failed: …`` with the status 400, as there. Unknown parameters are ignored, as there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from heron.clock import monotonic_s
from heron.driver_kit.core_version import core_version
from heron.driver_kit.redaction import redact_for_command
from heron.errors import HeronError, known, nearest
from heron_service_tracker.answers.answer_parts import plans_of, shown_config
from heron_service_tracker.answers.heron_answers import (
    exception_list,
    exception_summary,
    execution_state,
    histogram_text,
    instance_names,
    latest_metrics,
    logical_plan,
    metadata,
    packing_plan,
    physical_plan,
    runtime_state,
    scheduler_location,
    stack_text,
    topology_info,
)
from heron_service_tracker.calls.questions import Questions
from heron_service_tracker.history.recorder import Recorder
from heron_service_tracker.observed.observed import ObservedTopology
from heron_service_tracker.paths.metrics_wait import wait_for_metrics
from heron_service_tracker.paths.parameters import Parameter, Values, parsed
from heron_service_tracker.paths.query_path import heron_interval, heron_query, heron_timeline
from heron_service_tracker.request_errors import UnknownPlaceError
from heron_service_tracker.watches.observations import Observations

__all__ = ["heron_routes"]

_CLUSTERS = Parameter("cluster", "clusters", many=True)
_ENVIRONS = Parameter("environ", "environments", many=True)
_ROLE = Parameter("role", "the role")
_TOPOLOGIES = Parameter("topology", "topologies", many=True)
_ONE = (
    Parameter("cluster", "the cluster", required=True),
    Parameter("environ", "the environment", required=True),
    Parameter("topology", "the topology", required=True),
    _ROLE,
)
_COMPONENT = Parameter("component", "the component", required=True)
_INSTANCES = Parameter("instance", "instances", many=True)
_INSTANCE = Parameter("instance", "the instance", required=True)
_QUERY = Parameter("query", "the query", required=True)
_TIMES = (
    Parameter("starttime", "seconds since 1970", "integer", None, 0, 10**11, required=True),
    Parameter("endtime", "seconds since 1970", "integer", None, 0, 10**11, required=True),
)
_METRICS = Parameter("metricname", "metrics", many=True)
_INTERVAL = Parameter("interval", "seconds; -1 is since the start", "number", -1, -1, 14 * 86400)

Answer = Callable[[Observations, Values], object]
OfTopology = Callable[[ObservedTopology, Values], object]


def heron_routes(
    observations: Observations, recorder: Recorder | None = None, questions: Questions | None = None
) -> Iterator[Route]:
    """Every path of Heron Tracker that this tracker serves."""
    yield _route("/clusters", observations, (), lambda seen, _: [each.name for each in seen.clusters()])
    yield _route("/version", observations, (), lambda _seen, _values: core_version())
    yield _route("/machines", observations, (_CLUSTERS, _ENVIRONS, _TOPOLOGIES, _ROLE), _machines)
    yield _route("/topologies", observations, (_CLUSTERS, _ENVIRONS, _ROLE), _topologies)
    yield _route("/topologies/states", observations, (_CLUSTERS, _ENVIRONS, _ROLE), _states)
    for path, of_topology in _OF_TOPOLOGY.items():
        yield _route(f"/topologies/{path}", observations, _ONE, _about_one(of_topology))
    for path, (more, of_component) in _OF_COMPONENT.items():
        yield _route(f"/topologies/{path}", observations, (*_ONE, _COMPONENT, *more), _about_one(of_component))
    yield from _of_history(observations, recorder)
    yield _route(
        "/topologies/metrics",
        observations,
        (*_ONE, _COMPONENT, _METRICS, _INSTANCES, _INTERVAL),
        lambda seen, values: _about_one(lambda topology, _: _metrics(topology, recorder, values, seen))(seen, values),
    )
    yield _route("/topologies/pid", observations, (*_ONE, _INSTANCE), _about_one(_pid))
    if questions is not None:
        asked = questions

        def jstack(topology: ObservedTopology, values: Values) -> object:
            return _jstack(asked, topology, _task_of(topology, values))

        def histo(topology: ObservedTopology, values: Values) -> object:
            return _histo(asked, topology, _task_of(topology, values))

        yield _route("/topologies/jstack", observations, (*_ONE, _INSTANCE), _about_one(jstack))
        yield _route("/topologies/histo", observations, (*_ONE, _INSTANCE), _about_one(histo))


def _of_history(observations: Observations, recorder: Recorder | None) -> Iterator[Route]:
    def timeline(topology: ObservedTopology, values: Values) -> object:
        return heron_timeline(topology, recorder, values)

    def query(topology: ObservedTopology, values: Values) -> object:
        return heron_query(topology, recorder, values)

    for path in ("metrics/timeline", "metricstimeline"):
        parameters = (*_ONE, _COMPONENT, _METRICS, _INSTANCES, *_TIMES)
        yield _route(f"/topologies/{path}", observations, parameters, _about_one(timeline), waits=True)
    for path in ("metrics/query", "metricsquery"):
        yield _route(f"/topologies/{path}", observations, (*_ONE, _QUERY, *_TIMES), _about_one(query), waits=True)


def _route(
    path: str,
    observations: Observations,
    parameters: tuple[Parameter, ...],
    answer: Answer,
    *,
    waits: bool = False,
) -> Route:
    """A path. An answer that `waits` for the disk is made in a thread."""

    async def endpoint(request: Request) -> Response:
        began_s = monotonic_s()
        try:
            values = parsed(parameters, request.query_params.multi_items(), strict=False)
            found = await asyncio.to_thread(answer, observations, values) if waits else answer(observations, values)
            if isinstance(found, Awaitable):
                found = await found
            body, status = msgspec.json.encode(found), 200
        except HeronError as error:
            body, status = msgspec.json.encode(redact_for_command(f"request failed: {error}")), 400
        passed = {"x-process-time": f"{monotonic_s() - began_s:.6f}"}
        return Response(body, status, passed, "application/json")

    return Route(path, endpoint, methods=["GET"])


def _about_one(of_topology: OfTopology) -> Answer:
    def answer(observations: Observations, values: Values) -> object:
        topology = observations.topology(values.text("cluster"), values.text("topology"))
        environ, role = values.text("environ"), values.text("role")
        if topology.entry.env != environ or (role and topology.entry.role != role):
            entry = topology.entry
            msg = f"topology {topology.name!r} has environ {entry.env!r} and role {entry.role!r}"
            raise UnknownPlaceError(msg)
        return of_topology(topology, values)

    return answer


def _chosen(observations: Observations, values: Values) -> Iterator[ObservedTopology]:
    names = values.texts("cluster")
    clusters = [observations.cluster(name) for name in names] if names else observations.clusters()
    environs, role, topologies = values.texts("environ"), values.text("role"), values.texts("topology")
    for cluster in clusters:
        for name, each in sorted(cluster.topologies.items()):
            entry = each.entry
            fits = (not environs or entry.env in environs) and (not role or entry.role == role)
            if fits and (not topologies or name in topologies):
                yield each


def _topologies(observations: Observations, values: Values) -> object:
    names = values.texts("cluster") or [each.name for each in observations.clusters()]
    found: dict[str, dict[str, dict[str, list[str]]]] = {name: {} for name in names}
    for each in _chosen(observations, values):
        environs = found[each.cluster].setdefault(each.entry.role, {})
        environs.setdefault(each.entry.env, []).append(each.name)
    return found


def _states(observations: Observations, values: Values) -> object:
    found: dict[str, dict[str, dict[str, object]]] = {}
    for each in _chosen(observations, values):
        found.setdefault(each.cluster, {}).setdefault(each.entry.env, {})[each.name] = execution_state(each)
    return found


def _machines(observations: Observations, values: Values) -> object:
    found: dict[str, dict[str, dict[str, list[str]]]] = {}
    for each in _chosen(observations, values):
        hosts = _hosts(each)
        found.setdefault(each.cluster, {}).setdefault(each.entry.env, {})[each.name] = hosts
    return found


def _hosts(topology: ObservedTopology) -> list[str]:
    managers = topology.plans.physical.stmgrs if topology.plans and topology.plans.physical else ()
    return sorted({each.host for each in managers})


async def _metrics(topology: ObservedTopology, recorder: Recorder | None, values: Values, seen: Observations) -> object:
    component = _component(topology, values.text("component"))
    names = instance_names(plans_of(topology))
    _check_instances(names.values(), values.texts("instance"))
    if values.number("interval", -1) > 0:
        return await asyncio.to_thread(heron_interval, topology, recorder, values, seen.clock.wall_s())
    await wait_for_metrics(seen, topology.cluster, topology.name)
    rows, wanted = seen.topology(topology.cluster, topology.name).metrics, values.texts("metricname")
    return await asyncio.to_thread(latest_metrics, rows, names, component, wanted, values.texts("instance"))


def _pid(topology: ObservedTopology, values: Values) -> object:
    task_id = _task_of(topology, values)
    pids = [each.pid for each in topology.status.processes if each.task_id == task_id] if topology.status else []
    return {"command": f"heron status {topology.name}", "stdout": "".join(map(str, pids)), "stderr": ""}


async def _jstack(questions: Questions, topology: ObservedTopology, task_id: int) -> object:
    stacks = (await questions.stack(topology.cluster, topology.name, task_id)).stacks
    return {"command": f"heron stack {topology.name} {task_id}", "stdout": stack_text(stacks), "stderr": ""}


async def _histo(questions: Questions, topology: ObservedTopology, task_id: int) -> object:
    memory = (await questions.observers.memory(topology.cluster, topology.name, task_id, 0.0)).memory
    command = f"heron memory {topology.name} {task_id} --seconds 0"
    return {"command": command, "stdout": histogram_text(memory), "stderr": "\n".join(memory.notes)}


def _task_of(topology: ObservedTopology, values: Values) -> int:
    names = instance_names(plans_of(topology))
    _check_instances(names.values(), (values.text("instance"),))
    return next(task_id for task_id, name in names.items() if name == values.text("instance"))


def _exceptions(topology: ObservedTopology, values: Values) -> object:
    return exception_list(topology, _component(topology, values.text("component")), values.texts("instance"))


def _summary(topology: ObservedTopology, values: Values) -> object:
    return exception_summary(topology, _component(topology, values.text("component")), values.texts("instance"))


def _component(topology: ObservedTopology, name: str) -> str:
    names = [each.name for each in plans_of(topology).definition.components]
    if name not in names:
        msg = f"topology {topology.name!r} has no component {name!r}{nearest(name, names)}; known: {known(names)}"
        raise UnknownPlaceError(msg)
    return name


def _check_instances(names: Iterable[str], wanted: Iterable[str]) -> None:
    present = set(names)
    for each in wanted:
        if each not in present:
            msg = f"there is no instance {each!r}{nearest(each, present)}; known: {known(present)}"
            raise UnknownPlaceError(msg)


_OF_TOPOLOGY: dict[str, OfTopology] = {
    "info": lambda topology, _: topology_info(topology),
    "config": lambda topology, _: shown_config(plans_of(topology).definition.config),
    "metadata": lambda topology, _: metadata(topology),
    "executionstate": lambda topology, _: execution_state(topology),
    "schedulerlocation": lambda topology, _: scheduler_location(topology),
    "logicalplan": lambda topology, _: logical_plan(plans_of(topology)),
    "packingplan": lambda topology, _: packing_plan(plans_of(topology)),
    "physicalplan": lambda topology, _: physical_plan(topology, plans_of(topology)),
    "runtimestate": lambda topology, _: runtime_state(topology),
}

_OF_COMPONENT: dict[str, tuple[tuple[Parameter, ...], OfTopology]] = {
    "exceptions": ((_INSTANCES,), _exceptions),
    "exceptionsummary": ((_INSTANCES,), _summary),
}
