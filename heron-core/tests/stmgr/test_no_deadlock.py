"""A model of whole topologies with random plans, small windows and a random order of steps: no run stops.

Routers, outlets, windows, grants and back pressure are the real classes. Sockets are queues, and instances copy their
input to random tasks downstream. With credit per link instead of per task, such models stop for ever.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache

import pytest

from heron.clock import monotonic_s
from heron.ipc.frames.frame import (
    FRAME_HEADER_BYTES,
    FrameKind,
    frame_header,
    parse_segment,
    segment_routes,
)
from heron.ipc.link import CreditGrant, CreditWindow
from heron.planner.physical_plan import PlanIndex
from heron.stmgr.ack_routing import AckRouting
from heron.stmgr.back_pressure import BackPressure, Reporter
from heron.stmgr.local_tasks import LocalTasks
from heron.stmgr.outlet import Watermarks
from heron.stmgr.peer_session import next_segments
from heron.stmgr.router import Router
from heron_testing.builders import bolt, plan_index, spout, stmgr_locations, stream, subscription, topology
from parts import decoded_rows, tuple_segment

_HEADER = frame_header(FrameKind.DATA, 1, 1)
_LARGEST_PAYLOAD = 500
_SPOUT_SEGMENTS = 60


@dataclass(eq=False)
class Task:
    """An instance: its input, its output, and the credit in both directions."""

    task_id: int
    component: int
    container: int
    window: CreditWindow
    downstream: list[list[int]] = field(default_factory=list)
    to_emit: int = 0
    weight: int = 1
    out: deque[bytes] = field(default_factory=deque)
    inbox: deque[bytes] = field(default_factory=deque)
    grant: CreditGrant = field(default_factory=CreditGrant)
    room: CreditGrant = field(default_factory=CreditGrant)
    sent: dict[int, list[int]] = field(default_factory=dict)
    received: dict[int, list[object]] = field(default_factory=dict)

    def release(self, size_bytes: int) -> None:
        self.room.release(size_bytes)


class PeerRooms:
    """The producers of one peer at another."""

    def __init__(self) -> None:
        self.grants: dict[int, CreditGrant] = {}

    def receive(self, task_id: int, size_bytes: int) -> CreditGrant:
        grant = self.grants.setdefault(task_id, CreditGrant())
        grant.receive(size_bytes)
        return grant


class Model:
    """A random topology, and all steps that are possible next."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        draw = self.draw
        self.window_bytes = draw.choice([150, 400, 1500])
        high_bytes = draw.choice([200, 800])
        self.hard_bytes = draw.choice([1, 2]) * high_bytes
        self.containers = draw.randint(1, 4)
        self.routers = [
            Router(AckRouting(LocalTasks(1, ()), monotonic_s), Watermarks(high_bytes // 2, high_bytes, self.hard_bytes))
            for _ in range(self.containers)
        ]
        self.high_bytes = high_bytes
        self.tasks: dict[int, Task] = {}
        self._make_topology()
        self.pressures = [BackPressure(Reporter(here, 0)) for here in range(self.containers)]
        for pressure in self.pressures:
            pressure.set_plan(self._index(), throttles=True)
        self.reports: dict[tuple[int, int], deque[tuple[int, bool]]] = {}
        self.culprits: list[frozenset[int]] = [frozenset()] * self.containers
        self.refusals = 0
        self.links: dict[tuple[int, int], deque[bytes]] = {}
        self.rooms: dict[tuple[int, int], PeerRooms] = {}
        for router in self.routers:
            router.set_tasks(self.tasks)
            for outlet in router.outlets.values():
                outlet.open(self.window_bytes)
        for here in range(self.containers):
            for there in range(self.containers):
                if here != there:
                    self.links[here, there] = deque()
                    self.reports[here, there] = deque()
                    self.rooms[here, there] = PeerRooms()
        self.numbers = 0
        self.most_bytes = 0

    def _make_topology(self) -> None:
        draw = self.draw
        components: list[list[int]] = []
        self.inputs: dict[int, list[int]] = {}
        for level in range(draw.randint(2, 5)):
            ids = list(range(len(self.tasks) + 1, len(self.tasks) + 1 + draw.randint(1, 4)))
            for task_id in ids:
                task = Task(task_id, level, draw.randrange(self.containers), CreditWindow(self.window_bytes))
                task.weight = draw.choice([1, 1, 5, 20])
                task.to_emit = 0 if level else _SPOUT_SEGMENTS
                self.tasks[task_id] = task
            self.inputs[level] = [at for at in range(level) if at == level - 1 or draw.random() < 0.4]
            for at in self.inputs[level]:
                for task_id in components[at]:
                    self.tasks[task_id].downstream.append(ids)
            components.append(ids)

    def _index(self) -> PlanIndex:
        """The plan of the tasks, from which back pressure derives the feeders."""
        outputs = (stream("v"),)
        components = [
            bolt(str(level), *(subscription(str(source)) for source in sources), outputs=outputs)
            if level
            else spout(str(level), *outputs)
            for level, sources in self.inputs.items()
        ]
        tasks: dict[str, list[int]] = {}
        for each in self.tasks.values():
            tasks.setdefault(str(each.component), []).append(each.task_id)
        containers = {each.task_id: each.container for each in self.tasks.values()}
        stmgrs = stmgr_locations(*range(self.containers))
        return plan_index(topology(*components), tasks, containers=containers, stmgrs=stmgrs)

    def emit(self, task: Task) -> None:
        """One flush: segments, some of them for several tasks."""
        segments = []
        for consumers in task.downstream:
            count = self.draw.choice([1, 1, 1, len(consumers)])
            destinations = self.draw.sample(consumers, count)
            self.numbers += 1
            for task_id in destinations:
                task.sent.setdefault(task_id, []).append(self.numbers)
            segments.append(self._segment(task.task_id, destinations))
        if segments:
            task.out.append(b"".join((_HEADER, *segments)))

    def _segment(self, source_task: int, destinations: list[int]) -> bytes:
        row = (self.numbers, b"x" * self.draw.choice([1, 30, _LARGEST_PAYLOAD]))
        return tuple_segment([row], destinations, source_task=source_task)

    def steps(self) -> Iterator[tuple[int, Callable[[], None]]]:
        """``(weight, step)`` of all steps that are possible now."""
        for task in self.tasks.values():
            if task.to_emit and len(task.out) < 2 and not self._held(task):
                yield task.weight, lambda task=task: self._spout(task)  # type: ignore[misc]  # mypy: lambda defaults
            if task.inbox and len(task.out) < 2:
                yield task.weight, lambda task=task: self._consume(task)  # type: ignore[misc]
            if task.out and task.window.allows(len(task.out[0]) - FRAME_HEADER_BYTES):
                yield 10, lambda task=task: self._send(task)  # type: ignore[misc]
        for queues, step in ((self.reports, self._receive_report), (self.links, self._receive_frame)):
            for pair in (pair for pair, queue in queues.items() if queue):
                yield 10, lambda step=step, pair=pair: step(pair)  # type: ignore[misc]
        for container in range(self.containers):
            if self._pumpable(container):
                yield 10, lambda container=container: self._pump(container)  # type: ignore[misc]

    def _held(self, task: Task) -> bool:
        self.pressures[task.container].take_changes()
        held = bool(self.pressures[task.container].culprits_of(task.task_id))
        self.refusals += held
        return held

    def _spout(self, task: Task) -> None:
        task.to_emit -= 1
        self.emit(task)

    def _consume(self, task: Task) -> None:
        data = task.inbox.popleft()
        ((number, _),) = decoded_rows(data)
        task.received.setdefault(parse_segment(data, 0).source_task, []).append(number)
        window = self.routers[task.container].outlets[task.task_id].window
        assert window is not None
        task.grant.release(len(data))
        window.release(task.grant.released_bytes)
        for _ in range(self.draw.choice([0, 1, 1, 2])):
            self.emit(task)

    def _send(self, task: Task) -> None:
        frame = task.out.popleft()
        size = len(frame) - FRAME_HEADER_BYTES
        task.window.spend(size)
        task.room.receive(size)
        self.routers[task.container].route(frame, task)
        self._end_round(task.container)

    def _receive_frame(self, pair: tuple[int, int]) -> None:
        self.routers[pair[1]].route_from_peer(self.links[pair].popleft(), self.rooms[pair])
        self._end_round(pair[1])

    def _receive_report(self, pair: tuple[int, int]) -> None:
        task_id, on = self.reports[pair].popleft()
        self.pressures[pair[1]].report(task_id, Reporter(pair[0], 0), on=on)

    def _report_culprits(self, container: int) -> None:
        before, now = self.culprits[container], self.routers[container].culprits()
        self.culprits[container] = now
        for task_id in before ^ now:
            self.pressures[container].report_own(task_id, on=task_id in now)
            for (here, _), reports in self.reports.items():
                if here == container:
                    reports.append((task_id, task_id in now))

    def _pumpable(self, container: int) -> bool:
        return any(outlet.ready() is not None for outlet in self.routers[container].outlets.values())

    def _pump(self, container: int) -> None:
        router = self.routers[container]
        for task_id, outlet in router.outlets.items():
            if self.tasks[task_id].container == container:
                while (head := outlet.ready()) is not None:
                    self.tasks[task_id].inbox.append(bytes(outlet.pop(len(head))))
        for (here, there), link in self.links.items():
            if here == container:
                outlets = [each for task_id, each in router.outlets.items() if self.tasks[task_id].container == there]
                while segments := next_segments(outlets, self.draw.choice([1, 300, 2000])):
                    link.append(b"".join((_HEADER, *segments)))
        self._end_round(container)

    def _end_round(self, container: int) -> None:
        """Releases the credit that is due."""
        router = self.routers[container]
        queued = [outlet.queued_bytes for outlet in router.outlets.values()]
        self.most_bytes = max(self.most_bytes, *queued)
        router.release_held()
        self._report_culprits(container)
        for task in self.tasks.values():
            if task.container == container:
                task.window.release(task.room.released_bytes)
        for (here, there), rooms in self.rooms.items():
            if there == container:
                for task_id, grant in rooms.grants.items():
                    window = self.routers[here].outlets[task_id].window
                    assert window is not None
                    window.release(grant.released_bytes)

    def run(self) -> None:
        while steps := list(self.steps()):
            weights = [weight for weight, _ in steps]
            self.draw.choices(steps, weights)[0][1]()


def largest_frame(model: Model) -> int:
    consumers = max(len(task.downstream) for task in model.tasks.values())
    return consumers * (_LARGEST_PAYLOAD + 100)


@cache
def ran(seed: int) -> Model:
    """A model that has run to its end, which two tests look at."""
    model = Model(seed)
    model.run()
    return model


@pytest.mark.parametrize("seed", [*range(8), *(pytest.param(seed, marks=pytest.mark.matrix) for seed in range(8, 32))])
def test_all_segments_arrive_in_order_within_bounded_memory(seed: int) -> None:
    """No run stops, no segment is lost or overtaken, and no outlet exceeds its limit and the windows."""
    model = ran(seed)
    for task in model.tasks.values():
        assert (task.to_emit, len(task.out), len(task.inbox)) == (0, 0, 0)
        for task_id, numbers in task.sent.items():
            assert model.tasks[task_id].received[task.task_id] == numbers
    producers = len(model.tasks) + model.containers
    bound = model.hard_bytes + producers * max(model.window_bytes, largest_frame(model))
    assert model.most_bytes <= bound
    for pressure in model.pressures:
        pressure.take_changes()
    assert not any(pressure.culprits_of(task_id) for pressure in model.pressures for task_id in model.tasks)
    for router in model.routers:
        assert not router.culprits()
        for outlet in router.outlets.values():
            assert outlet.window is not None
            assert outlet.window.sent_bytes == outlet.window.released_bytes


def test_the_model_has_back_pressure() -> None:
    """A model without congestion would prove nothing."""
    jammed = held = 0
    for seed in range(8):
        model = ran(seed)
        jammed += model.most_bytes > model.hard_bytes
        held += model.refusals > 0
    assert jammed >= 6
    assert held >= 6


def test_a_segment_is_parsed_where_it_was_cut() -> None:
    """The frames of the model are valid."""
    model = Model(0)
    task = next(each for each in model.tasks.values() if each.downstream)
    model.emit(task)
    assert [parse_segment(task.out[0], start).source_task for start, _, _ in segment_routes(task.out[0])]
