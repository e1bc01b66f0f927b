"""The markers and the routes of a bolt task while an update changes its component, its sources or its consumers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heron.api.bolt import Bolt
from heron.api.definition import GroupingKind
from heron.api.tuple import Tuple
from heron.driver_kit.signals import Signals
from heron.instance.bolt_runner import BoltRunner
from heron.instance.gateway.gateway import Gateway
from heron.instance.queues.data_queue import PlanReceived, SessionOpened
from heron.instance.task import Task
from heron.ipc import control_pb2 as pb
from heron.ipc.envelope import Envelope
from heron.ipc.frames.frame import FRAME_HEADER_BYTES, Marker, SegmentKind, marker_segment, marker_value, parse_segment
from heron.kernel.settings import EngineSettings
from heron.planner.physical_plan import PhysicalPlan, PlanUpdate, UpdatePhase
from heron_testing.builders import bolt, physical_plan, spout, stream, subscription, topology
from parts import data_frame, decoded_rows, end_marker, instance_spec, tuple_segment

UPDATE = PlanUpdate(7, UpdatePhase.SWITCH, "target")
SOURCES, BOLTS, SINKS = (1, 2), (3, 4), (5, 6)


class Passing(Bolt):
    """Emits each number, and a word in `finish`."""

    outputs = ("value",)

    def process(self, tup: Tuple) -> None:
        self.emit([tup.values[0]])

    def finish(self) -> None:
        self.emit(["finished"])


class WhenIdle(Signals):
    """Asks to stop when the queue is empty; catches nothing."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    @property
    def stop_requested(self) -> bool:
        return self._gateway.data_in.queued_bytes() == 0 and self._gateway.data_in.peek_command() is None


def plan_of(
    version: int, update: PlanUpdate | None = None, sinks: tuple[int, ...] = SINKS, sources: tuple[int, ...] = SOURCES
) -> PhysicalPlan:
    """A plan: spout -> bolt (2) -> sink, which gets each row once."""
    definition = topology(
        spout("spout", stream("v"), parallelism=len(sources)),
        bolt("bolt", subscription("spout", GroupingKind.ALL), outputs=(stream("value"),), parallelism=2),
        bolt("sink", subscription("bolt", GroupingKind.ALL), parallelism=len(sinks)),
    )
    tasks = {"spout": sources, "bolt": BOLTS, "sink": sinks}
    return replace(physical_plan(definition, tasks, version=version), update=update)


class Bench:
    """Task 3, a bolt without sockets."""

    def __init__(self, plan: PhysicalPlan) -> None:
        spec = instance_spec("bolt", 3)
        settings = EngineSettings()
        self.gateway = Gateway(spec, settings)
        self.task = Task(spec, settings, self.gateway, plan)
        self.runner = BoltRunner(self.task, WhenIdle(self.gateway), Passing)
        self.runner.run(ended=False)
        self.output()

    def put(self, *segments: bytes) -> None:
        """A frame arrives, and is processed."""
        frame = data_frame(*segments)
        self.gateway.data_in.put(frame, len(frame) - FRAME_HEADER_BYTES)
        self.runner.work()

    def take(self, plan: PhysicalPlan) -> None:
        """A plan arrives, and a batch without rows behind it; then nothing else is there to do."""
        frame = data_frame(numbers(1))
        self.gateway.data_in.put(frame, len(frame) - FRAME_HEADER_BYTES)
        self.runner.handle(PlanReceived(plan))
        self.runner.work()

    def output(self) -> list[object]:
        """What has left since the last call: values, markers and reports. Markers have value and destinations."""
        self.runner.emitter.flush()
        found: list[object] = []
        items = self.gateway.data_out.items
        while items:
            item = items.popleft()
            if isinstance(item, Envelope):
                found.append(item.task_report.phase)
                continue
            for data in item[0]:
                head = parse_segment(data, 0)
                if head.kind == SegmentKind.MARKER:
                    found.append((Marker(head.stream).name, marker_value(data, head), head.destinations))
                else:
                    found += [(row[0], head.destinations) for row in decoded_rows(data)]
        return found


def numbers(source: int, *values: object) -> bytes:
    return tuple_segment([(value,) for value in values], (3,), source_task=source)


def plan_marker(source: int, update: int = 7) -> bytes:
    return marker_segment((3,), Marker.PLAN, update, plan_version=1, source_task=source, incarnation=0)


def test_a_task_flushes_before_it_takes_new_routes_and_marks_the_old_tasks() -> None:
    """A new consumer never had the old routes, so it gets no marker."""
    bench = Bench(plan_of(1, sinks=(5,)))
    bench.put(numbers(1, "before"))
    bench.take(plan_of(2, replace(UPDATE, phase=UpdatePhase.PREPARE, added=(6,))))
    bench.put(numbers(1, "meanwhile"))
    assert bench.output() == [("before", (5,)), ("meanwhile", (5,))]
    bench.put(numbers(1, "late"))
    bench.take(plan_of(3, replace(UPDATE, added=(6,))))
    bench.put(numbers(1, "after"))
    assert bench.output() == [("late", (5,)), ("PLAN", 7, (5,)), ("after", (5, 6))]


def test_markers_are_repeated_to_a_new_stream_manager() -> None:
    """The former one may have died with them."""
    bench = Bench(plan_of(1))
    bench.take(plan_of(2, UPDATE))
    bench.output()
    bench.runner.handle(SessionOpened(ended=False))
    assert bench.output()[0] == ("PLAN", 7, SINKS)


def test_a_task_that_starts_during_the_switch_sends_markers_first() -> None:
    """Its former incarnation may have died before it did."""
    spec, settings = instance_spec("bolt", 3), EngineSettings()
    gateway = Gateway(spec, settings)
    BoltRunner(Task(spec, settings, gateway, plan_of(2, UPDATE)), WhenIdle(gateway), Passing).run(ended=False)
    first = gateway.data_out.items[0]
    assert not isinstance(first, Envelope)
    assert parse_segment(first[0][0], 0).stream == Marker.PLAN


def test_a_removed_task_leaves_when_every_task_upstream_has_marked() -> None:
    """It sends all that it has, then END, then the report. `finish` is not called, because other tasks go on."""
    bench = Bench(plan_of(1))
    bench.take(plan_of(2, replace(UPDATE, removed=(3,))))
    bench.put(plan_marker(1), numbers(2, "last"))
    assert bench.output() == [("PLAN", 7, SINKS), ("last", SINKS)]
    bench.put(numbers(2, "very last"), plan_marker(2))
    assert bench.output() == [("very last", SINKS), ("END", 0, SINKS), pb.TASK_PHASE_LEFT]
    assert bench.runner.ended


def test_data_of_an_added_task_waits_for_the_plan_that_has_it() -> None:
    """The new task may be on a machine that gets the plan earlier. Without the wait, its first tuples would be lost."""
    bench = Bench(plan_of(1))
    bench.put(tuple_segment([("early",)], (3,), source_task=9, plan_version=3), numbers(1, "known"))
    bench.put(end_marker((3,), 1), end_marker((3,), 2))
    assert bench.output() == [("known", SINKS)]
    bench.take(plan_of(3, sources=(*SOURCES, 9)))
    assert bench.output() == [("early", SINKS)]
    bench.put(end_marker((3,), 9))
    assert bench.output()[-1] == pb.TASK_PHASE_ENDED


def test_markers_may_arrive_before_the_plan() -> None:
    """Stream managers send the plan at different times. Markers of an earlier update do not count."""
    bench = Bench(plan_of(1))
    bench.put(plan_marker(1), plan_marker(2, 6))
    bench.take(plan_of(2, replace(UPDATE, removed=(3,))))
    assert pb.TASK_PHASE_LEFT not in bench.output()
    bench.put(end_marker((3,), 2))
    assert bench.output()[-1] == pb.TASK_PHASE_LEFT


@pytest.mark.parametrize(
    "update", [replace(UPDATE, removed=(4,)), replace(UPDATE, phase=UpdatePhase.PREPARE, removed=(3,))]
)
def test_other_tasks_and_other_phases_stay(update: PlanUpdate) -> None:
    """Only the switch ends a removed task."""
    bench = Bench(plan_of(1))
    bench.take(plan_of(2, update))
    bench.put(plan_marker(1), plan_marker(2))
    assert not bench.runner.ended


def test_a_task_that_has_ended_repeats_its_end_to_new_consumers() -> None:
    """They wait for the END of each task upstream."""
    bench = Bench(plan_of(1, sinks=(5,)))
    bench.put(end_marker((3,), 1), end_marker((3,), 2))
    assert bench.output() == [("finished", (5,)), ("END", 0, (5,)), pb.TASK_PHASE_ENDED]
    bench.runner.handle(PlanReceived(plan_of(2, replace(UPDATE, phase=UpdatePhase.PREPARE, added=(6,)))))
    assert bench.output() == [("END", 0, (5, 6))]
