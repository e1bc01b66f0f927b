"""A process that answers for the topology managers of topologies that do not run, with values as of real ones.

    python -m bench.topologies_in_name_only STATE_FOLDER TOPOLOGIES TASKS [LARGEST [COMPONENTS]]

The first one has LARGEST tasks, the others TASKS. A topology has a spout and a bolt, or COMPONENTS in levels. It writes
their nodes, prints ``ready``, and answers until its input ends. `started_at_s` of a status is the time of that answer.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from msgspec.structs import replace

from heron.api.definition import (
    ComponentDefinition,
    ComponentKind,
    GroupingDefinition,
    GroupingKind,
    InputDefinition,
    StreamDefinition,
    TopologyDefinition,
)
from heron.clock import monotonic_s, wall_s
from heron.driver_kit.loading import open_driver
from heron.ipc import control_pb2 as pb
from heron.ipc.documents.metrics_table import MetricsRow, MetricsTable, encode_metrics, table_of
from heron.ipc.documents.status import (
    ComponentStatus,
    LeaderStatus,
    ProcessStatus,
    TaskStatus,
    TopologyStatus,
    encode_status,
)
from heron.ipc.envelope import Envelope, body_of, control_frame, parse_control
from heron.ipc.guarded_hub import GuardedHub, open_guarded_hub
from heron.ipc.keys import ClientKind, new_keys
from heron.ipc.reactor import Reactor
from heron.ipc.socket import SocketContext
from heron.planner.packing_plan import ContainerPlan, InstancePlan, PackingPlan, Resource
from heron.planner.physical_plan import PhysicalPlan, StreamManagerLocation, TaskPlan, TopologyState
from heron.spi.driver import DriverRef
from heron.spi.statemgr import NodeKind, StateManager
from heron.state_nodes.execution_state import ExecutionState, encode_execution_state
from heron.state_nodes.plans import encode_plan
from heron.state_nodes.tmanager_location import TManagerLocation, encode_tmanager_location
from heron.state_nodes.topology_keys import encode_keys

__all__ = ["STATE_DRIVER"]

STATE_DRIVER = "heron_statemgr_localfs.state_manager:LocalFsStateManager"

_TASKS_IN_CONTAINER = 10
_WIDTH = 6  # components of a level
_MOST_INPUTS = 2  # of a bolt; its counts are its first metrics
_USES = ("user-cpu", "user-blocked", "engine", "input", "room", "throttled", "acks", "paused")
_GAUGES = ("in-queue-bytes", "in-queue-capacity-bytes", "out-queue-bytes", "out-queue-capacity-bytes", "resident-bytes")
_OTHERS = ("cpu-wait-s", "held-back-s", "gc-pause-s", "ack-count", "fail-count", "ignored-ack-count")
_RATES = ("true-rate-in", "true-rate-out", "selectivity")
_COUNTS = ("emit-count", "execute-count")
_ENGINE_ROWS = 35  # of each container: its stream manager and its metrics manager
_HOST_GAUGES = ("host-memory-available-bytes", "container-memory-bytes")
_SELDOM = 0.001  # of the time
_RATE = 1000.0  # tuples of a task per second


def _components(tasks: int, components: int) -> tuple[ComponentDefinition, ...]:
    """A spout and a bolt, or levels of components: each bolt reads one or two of the level before."""
    grouping = GroupingDefinition(GroupingKind.FIELDS, ("word",))

    def component(name: str, parallelism: int, *sources: str, is_last: bool = False) -> ComponentDefinition:
        kind = ComponentKind.BOLT if sources else ComponentKind.SPOUT
        outputs = () if is_last else (StreamDefinition("default", ("word",)),)
        inputs = tuple(InputDefinition(each, "default", grouping) for each in sources)
        return ComponentDefinition(name, kind, "x:Component", parallelism, outputs, inputs, {})

    if components == len(_COUNTS):
        return component("word", tasks // 2), component("count", tasks - tasks // 2, "word", is_last=True)
    names = [f"stage-{number // _WIDTH}-{number % _WIDTH}" for number in range(components)]
    found = []
    for number, name in enumerate(names):
        before = number - _WIDTH
        sources = {names[before], names[before - before % _WIDTH]} if before >= 0 else set()
        share = tasks * (number + 1) // components - tasks * number // components
        found.append(component(name, share, *sorted(sources), is_last=number + _WIDTH >= components))
    return tuple(found)


class NamedTopology:
    """One topology: its plans, and the values that its topology manager would answer."""

    def __init__(self, name: str, tasks: int, components: int = 2) -> None:
        self.name = name
        self.id = f"{name}-1"
        self.begin_s = monotonic_s()
        self._tables: dict[frozenset[str], MetricsTable] = {}
        self.definition = TopologyDefinition(name, _components(tasks, components), {})
        places = [(each.name, index) for each in self.definition.components for index in range(each.parallelism)]
        self.tasks = tuple(
            TaskPlan(number, *place, 1 + number % max(1, tasks // _TASKS_IN_CONTAINER))
            for number, place in enumerate(places, 1)
        )
        self.containers = sorted({each.container_id for each in self.tasks})
        self._running = tuple(
            TaskStatus(each.task_id, each.component, each.container_id, "running", 1) for each in self.tasks
        )
        self._processes = tuple(self._all_processes())

    def plans(self) -> tuple[PackingPlan, PhysicalPlan]:
        """Return the packing plan and the physical plan."""
        size = Resource(1.0, 2**29, 2**30)
        packing = PackingPlan(
            "p1",
            tuple(
                ContainerPlan(
                    container,
                    tuple(
                        InstancePlan(each.component, each.task_id, each.component_index, size)
                        for each in self.tasks
                        if each.container_id == container
                    ),
                    Resource(12.0, 2**33, 2**34),
                )
                for container in self.containers
            ),
        )
        managers = tuple(
            StreamManagerLocation(each, 1, f"tcp://10.0.0.1:{each}", "h1", each) for each in self.containers
        )
        return packing, PhysicalPlan(1, 1, self.id, self.definition, TopologyState.RUNNING, self.tasks, managers)

    def status(self) -> TopologyStatus:
        """Return the status now; its totals grow."""
        passed_s = monotonic_s() - self.begin_s
        return TopologyStatus(
            self.name,
            self.id,
            "running",
            wall_s(),
            plan_version=1,
            components=tuple(_status_of(each, passed_s) for each in self.definition.components),
            tasks=self._running,
            processes=self._processes,
            leader=LeaderStatus(0, 10, "h1", 1, wall_s()),
        )

    def metrics(self, names: frozenset[str]) -> bytes:
        """Return the metrics of these names, or all: 27 rows of each task, and those of the engine.

        Only the counts of tuples grow, so the others are made once.
        """
        passed_s = monotonic_s() - self.begin_s
        if (table := self._tables.get(names)) is None:
            rows = (row for row in self._rows(passed_s) if not names or row.name in names)
            table = self._tables[names] = table_of(rows)
        counts = {number for number, each in enumerate(table.series) if each.name in _COUNTS}
        for owner in table.owners:
            for at, each in enumerate(owner.values[:_MOST_INPUTS]):
                if each.series in counts:
                    owner.values[at] = replace(each, value=_RATE * passed_s)
        return encode_metrics(table)

    def _rows(self, passed_s: float) -> Iterator[MetricsRow]:
        places: dict[int, list[int]] = {}
        inputs = {each.name: each.inputs for each in self.definition.components}
        for each in self.tasks:
            yield from _task_rows(each, inputs[each.component], passed_s)
            places.setdefault(each.container_id, []).append(each.task_id)
        for place, tasks in places.items():
            yield from _engine_rows(place, tasks, passed_s)

    def _all_processes(self) -> Iterator[ProcessStatus]:
        for container in self.containers:
            for process in ("executor", "stmgr", "metricsmgr"):
                yield ProcessStatus(container, process, "running", 100 + container, 1, host="h1")
        for each in self.tasks:
            name = f"{each.component}-{each.task_id}"
            yield ProcessStatus(each.container_id, name, "running", 1000 + each.task_id, 1, each.task_id, host="h1")


def _status_of(component: ComponentDefinition, passed_s: float) -> ComponentStatus:
    rate = _RATE * component.parallelism
    if component.kind is ComponentKind.SPOUT:
        return ComponentStatus(
            component.name, "spout", component.parallelism, emitted=int(rate * passed_s), rate_per_s=rate
        )
    return ComponentStatus(
        component.name, "bolt", component.parallelism, executed=int(rate * passed_s), rate_per_s=rate, latency_s=1e-4
    )


def _counts(row: MetricsRow, inputs: Sequence[InputDefinition], passed_s: float) -> Iterator[MetricsRow]:
    row = replace(row, unit="tuples", value=_RATE * passed_s, labels={"stream": "default"}, rate_per_s=_RATE)
    if not inputs:
        yield replace(row, name="emit-count")
    for each in inputs:
        yield replace(row, name="execute-count", labels={"stream": "default", "component": each.component})


def _task_rows(task: TaskPlan, inputs: Sequence[InputDefinition], passed_s: float) -> Iterator[MetricsRow]:
    row = MetricsRow(task.component, task.task_id, f"{task.component}-{task.task_id}", "", "counter", "", 0.0)
    yield from _counts(row, inputs, passed_s)
    for use in _USES:
        yield replace(row, name="task-time-s", unit="s", value=passed_s / 8, labels={"use": use}, rate_per_s=0.125)
    yield replace(row, name="cpu-seconds", unit="s", value=passed_s * 0.3, rate_per_s=0.3)
    for name in _GAUGES:
        yield replace(row, name=name, kind="gauge", unit="bytes", value=float(2**20))
    for name in _OTHERS:
        yield replace(row, name=name, unit="s", value=_SELDOM * passed_s, rate_per_s=_SELDOM)
    for name in _RATES:
        yield replace(row, name=name, kind="gauge", unit="tuples/s", value=_RATE)
    for generation in ("0", "1"):
        yield replace(row, name="gc-collection-count", value=1.0, labels={"generation": generation}, rate_per_s=0.0)
    yield replace(
        row, name="execute-latency", kind="histogram", unit="s", value=_RATE, rate_per_s=_RATE, p50=1e-4, p99=2e-3
    )


def _engine_rows(container: int, tasks: list[int], passed_s: float) -> Iterator[MetricsRow]:
    stmgr = MetricsRow("", 0, f"stmgr-{container}", "late-s", "counter", "s", _SELDOM * passed_s, {}, _SELDOM)
    waiting = replace(stmgr, name="unconfirmed-bytes", unit="bytes", value=_RATE * passed_s)
    of_stmgr = [stmgr, *(replace(waiting, labels={"task": str(task)}) for task in tasks)]
    host = replace(stmgr, process=f"metricsmgr-{container}", name="host-cpu-s")
    of_host = [replace(host, name="host-cpu-pressure-s")]
    of_host += [replace(host, value=passed_s, rate_per_s=1.0, labels={"mode": mode}) for mode in ("busy", "idle")]
    of_host += [replace(host, name=name, kind="gauge", value=1e10, rate_per_s=None) for name in _HOST_GAUGES]
    yield from of_stmgr
    for number in range(_ENGINE_ROWS - len(of_stmgr) - len(of_host)):
        yield replace(stmgr, name=f"metric-{number}")
    yield from of_host


def _answer(topology: NamedTopology, hub: GuardedHub) -> None:
    while (received := hub.receive_from()) is not None:
        identity, frame, _ = received
        question = parse_control(frame)
        if body_of(question) == "status_request":
            status = pb.StatusReply(
                request_id=question.status_request.request_id, document=encode_status(topology.status())
            )
            reply = Envelope(epoch=1, status_reply=status)
        else:
            request = question.metrics_request
            document = topology.metrics(frozenset(request.names))
            metrics = pb.MetricsReply(request_id=request.request_id, document=document)
            reply = Envelope(epoch=1, metrics_reply=metrics)
        hub.send(identity, control_frame(reply))


def _announce(topology: NamedTopology, state: StateManager, folder: Path, reactor: Reactor) -> None:
    """Write the nodes of a topology, and answer for it."""
    keys, name = new_keys(), topology.name
    hub = open_guarded_hub(SocketContext(max_frame_bytes=-1), "127.0.0.1", keys.listening_to(*ClientKind))
    reactor.guard(hub)
    reactor.on_readable(hub, functools.partial(_answer, topology, hub))
    run = ExecutionState(
        name, topology.id, wall_s(), "ann", os.uname().nodename, "local", "", str(folder), str(folder), attached=False
    )
    packing, physical = topology.plans()
    state.set(NodeKind.EXECUTION_STATE, name, encode_execution_state(run))
    state.set(NodeKind.TOPOLOGY, name, encode_plan(topology.definition))
    state.set(NodeKind.PACKING_PLAN, name, encode_plan(packing))
    state.set(NodeKind.PHYSICAL_PLAN, name, encode_plan(physical))
    state.set(NodeKind.KEYS, name, encode_keys(keys))
    location = TManagerLocation(hub.endpoint, topology.id, os.getpid(), "h1")
    state.set(NodeKind.TMANAGER_LOCATION, name, encode_tmanager_location(location))


def main(folder: str, topologies: str, tasks: str, largest: str = "0", components: str = "2") -> None:
    """Answer until the input ends."""
    reactor = Reactor()
    driver = DriverRef("statemgr", "localfs", STATE_DRIVER, {"root": folder})
    with closing(open_driver(driver, StateManager)) as state:
        for number in range(int(topologies)):
            size = int(tasks) if number else int(largest) or int(tasks)
            _announce(NamedTopology(f"load-{number:02}", size, int(components)), state, Path(folder), reactor)
        reactor.on_readable(sys.stdin.fileno(), reactor.stop)
        print("ready", flush=True)  # the bench waits for it
        reactor.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
