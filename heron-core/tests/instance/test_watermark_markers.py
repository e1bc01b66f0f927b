"""Watermarks through the runners of a spout and a bolt: what leaves, in which order, and what the component is told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from heron.api.bolt import Bolt
from heron.api.definition import GroupingKind
from heron.api.spout import Spout
from heron.api.tuple import Tuple
from heron.checkpoints.archive import CheckpointArchive
from heron.driver_kit.signals import Signals
from heron.errors import EmitError
from heron.instance.bolt_runner import BoltRunner
from heron.instance.gateway.gateway import Gateway
from heron.instance.queues.data_queue import PlanReceived
from heron.instance.runner import ComponentRunner
from heron.instance.spout_runner import SpoutRunner
from heron.instance.task import Task
from heron.ipc.envelope import Envelope
from heron.ipc.frames.frame import FRAME_HEADER_BYTES, Marker, SegmentKind, marker_segment, marker_value, parse_segment
from heron.kernel.settings import EngineSettings
from heron.planner.physical_plan import CheckpointPlan, PhysicalPlan, PlanUpdate, UpdatePhase
from heron_testing.builders import bolt, physical_plan, spout, stream, subscription, topology
from heron_testing.memory_checkpoints import MemoryCheckpointStore
from parts import data_frame, decoded_rows, end_marker, instance_spec, tuple_segment

SOURCES, BOLT, SINKS = (1, 2), 3, (4, 5)
UPDATE = PlanUpdate(7, UpdatePhase.SWITCH, "target")


class When(Signals):
    """Asks to stop when a condition holds; catches nothing."""

    def __init__(self, condition: Callable[[], bool]) -> None:
        self._condition = condition

    @property
    def stop_requested(self) -> bool:
        return self._condition()


def plan_of(
    version: int = 1,
    *,
    sources: tuple[int, ...] = SOURCES,
    sinks: tuple[int, ...] = SINKS,
    update: PlanUpdate | None = None,
    checkpoints: CheckpointPlan | None = None,
) -> PhysicalPlan:
    """A plan: spout (2) -> bolt (1) -> sink (2), each on both streams."""
    outputs = (stream("value"), stream("value", name="side"))
    definition = topology(
        spout("spout", *outputs, parallelism=len(sources)),
        bolt("bolt", *(subscription("spout", GroupingKind.ALL, stream=each.name) for each in outputs), outputs=outputs),
        bolt("sink", *(subscription("bolt", GroupingKind.ALL, stream=each.name) for each in outputs), parallelism=2),
    )
    plan = physical_plan(definition, {"spout": sources, "bolt": (BOLT,), "sink": sinks}, version=version)
    return replace(plan, update=update, checkpoints=checkpoints)


def output(runner: ComponentRunner) -> list[object]:
    """What has left since the last call: values, and markers as ``(name, value, destinations)``; no reports."""
    found: list[object] = []
    items = runner.task.gateway.data_out.items
    while items:
        item = items.popleft()
        for data in () if isinstance(item, Envelope) else item[0]:
            head = parse_segment(data, 0)
            if head.kind == SegmentKind.MARKER:
                found.append((Marker(head.stream).name, marker_value(data, head), head.destinations))
            elif head.kind == SegmentKind.TUPLES:
                found += [row[0] for row in decoded_rows(data)]
    return found


def watermark(source: int, time_us: int, *, idle: bool = False, version: int = 1) -> bytes:
    kind = Marker.IDLE if idle else Marker.WATERMARK
    return marker_segment((BOLT,), kind, time_us, plan_version=version, source_task=source, incarnation=0)


def checkpoint(source: int, number: int = 1) -> bytes:
    return marker_segment((BOLT,), Marker.CHECKPOINT, number, plan_version=1, source_task=source, incarnation=0)


def values(source: int, *given: object) -> bytes:
    return tuple_segment([(value,) for value in given], (BOLT,), source_task=source)


class Recording(Bolt):
    """Emits what it is told, and fails at the time 0.0."""

    def __init__(self, delegate: object = None) -> None:
        super().__init__(delegate)  # type: ignore[arg-type]  # the engine's
        self.heard: list[object] = []

    def process(self, tup: Tuple) -> None:
        self.heard.append(tup.values[0])
        self.emit([tup.values[0]])

    def process_watermark(self, time_s: float) -> None:
        self.heard.append(("watermark", time_s))
        self.emit([f"until {time_s:g}"])
        self.emit([f"aside {time_s:g}"], stream="side")
        assert time_s != 0.0, "zero"

    def finish(self) -> None:
        self.heard.append("finish")


class BoltBench:
    """A bolt task without sockets."""

    def __init__(self, plan: PhysicalPlan | None = None, archive: CheckpointArchive | None = None) -> None:
        spec, settings = instance_spec("bolt", BOLT), EngineSettings()
        self.gateway = Gateway(spec, settings)
        self.task = Task(spec, settings, self.gateway, plan or plan_of(), archive)
        self.runner = BoltRunner(self.task, When(lambda: True), Recording)
        self.runner.run(ended=False)
        self.runner._signals = When(lambda: False)  # it works, but only when the test says so
        output(self.runner)

    def put(self, *segments: bytes) -> list[object]:
        """A frame arrives and is processed, with what was parked; returns what has left."""
        frame = data_frame(*segments)
        self.gateway.data_in.put(frame, len(frame) - FRAME_HEADER_BYTES)
        while self.gateway.data_in.queued_bytes():
            self.runner.work()
        self.runner.emitter.flush()
        return output(self.runner)

    @property
    def heard(self) -> list[object]:
        """What the present component was told."""
        component = self.runner.component
        assert isinstance(component, Recording)
        return component.heard


def test_a_watermark_stays_behind_the_tuples_before_it_and_what_is_emitted_for_it() -> None:
    """A consumer closes a window when it has everything that belongs to it, on every stream."""
    bench = BoltBench()
    left = bench.put(values(1, "a"), watermark(1, 5_000_000), values(2, "b"), watermark(2, 4_000_000), values(1, "c"))
    assert bench.heard == ["a", "b", ("watermark", 4.0), "c"]
    assert sorted(map(str, left[:4])) == ["a", "aside 4", "b", "until 4"]
    assert left[4:] == [("WATERMARK", 4_000_000, SINKS), "c"]


def test_the_metric_has_the_watermark_only_where_there_is_one() -> None:
    """Topologies without event time have one metric less."""
    bench = BoltBench()
    assert "watermark" not in {each.name for each in bench.task.telemetry.record(bench.runner.emitter).metrics}
    bench.put(watermark(1, 2_500_000), watermark(2, 4_000_000))
    found = {each.name: each.value for each in bench.task.telemetry.record(bench.runner.emitter).metrics}
    assert found["watermark"] == 2.5


def test_what_a_long_call_emits_can_leave_meanwhile() -> None:
    """The gateway flushes it after the linger, as during every other call of the author's code."""
    bench = BoltBench()
    lock, free = bench.runner.emitter.lock, []

    def process_watermark(_time_s: float) -> None:
        free.append(lock.try_acquire())
        lock.release()

    bench.runner.component.process_watermark = process_watermark  # type: ignore[assignment,method-assign]  # of this object
    bench.put(watermark(1, 1), watermark(2, 1))
    assert free == [True]
    assert not lock.try_acquire()


def test_an_exception_is_reported_and_the_watermark_is_forwarded(capsys: pytest.CaptureFixture[str]) -> None:
    """Otherwise one bad window would stop the event time of the whole topology."""
    bench = BoltBench()
    left = bench.put(watermark(1, 0), watermark(2, 0))
    assert left == ["until 0", "aside 0", ("WATERMARK", 0, SINKS)]
    assert "process_watermark" in capsys.readouterr().err
    assert bench.put(watermark(1, 7_000_000), watermark(2, 7_000_000))[-1] == ("WATERMARK", 7_000_000, SINKS)


def test_an_end_releases_the_watermark_and_the_last_end_calls_only_finish() -> None:
    """`finish` is the last chance to emit."""
    bench = BoltBench()
    assert bench.put(watermark(1, 5_000_000)) == []
    assert bench.put(end_marker((BOLT,), 2)) == ["until 5", "aside 5", ("WATERMARK", 5_000_000, SINKS)]
    assert bench.put(end_marker((BOLT,), 1)) == [("END", 0, SINKS)]
    assert bench.heard == [("watermark", 5.0), "finish"]


def test_idle_tasks_are_passed_on_as_idle() -> None:
    """The bolt's own consumers need not wait for it either."""
    bench = BoltBench()
    assert bench.put(watermark(1, 1, idle=True)) == []
    assert bench.put(watermark(2, 3, idle=True))[-1] == ("IDLE", 3, SINKS)
    assert bench.put(watermark(2, 2)) == [("WATERMARK", 3, SINKS)]
    assert bench.heard == [("watermark", 0.000003)]


def test_a_bolt_without_consumers_sends_nothing() -> None:
    """It only acts."""
    definition = topology(spout("spout", stream("value")), bolt("bolt", subscription("spout"), outputs=()))

    class Last(Recording):
        def process_watermark(self, time_s: float) -> None:
            self.heard.append(time_s)

    spec, settings = instance_spec("bolt", 2), EngineSettings()
    task = Task(spec, settings, Gateway(spec, settings), physical_plan(definition))
    runner = BoltRunner(task, When(lambda: not task.gateway.data_in.queued_bytes()), Last)
    frame = data_frame(marker_segment((2,), Marker.WATERMARK, 9, plan_version=1, source_task=1, incarnation=0))
    task.gateway.data_in.put(frame, len(frame) - FRAME_HEADER_BYTES)
    runner.run(ended=False)
    assert output(runner) == []
    assert isinstance(runner.component, Last)
    assert runner.component.heard == [0.000009]


def test_the_upstream_tasks_are_those_of_the_plan() -> None:
    """A task that has gone holds nothing back; a new one does, but not before the switch."""
    bench = BoltBench()
    assert bench.put(watermark(1, 5_000_000)) == []
    prepare = replace(UPDATE, phase=UpdatePhase.PREPARE, added=(6,), removed=(2,))
    bench.runner.handle(PlanReceived(plan_of(2, sources=(1, 2, 6), update=prepare)))
    assert bench.put(watermark(2, 3_000_000))[-1] == ("WATERMARK", 3_000_000, SINKS)
    bench.runner.handle(PlanReceived(plan_of(3, sources=(1, 2, 6), update=replace(prepare, phase=UPDATE.phase))))
    assert bench.put(watermark(2, 8_000_000)) == [("PLAN", 7, SINKS)]
    assert bench.put(watermark(6, 4_000_000))[-1] == ("WATERMARK", 4_000_000, SINKS)
    assert bench.put(watermark(6, 9_000_000))[-1] == ("WATERMARK", 5_000_000, SINKS)
    bench.runner.handle(PlanReceived(plan_of(4, sources=(6,))))
    assert output(bench.runner)[-1] == ("WATERMARK", 9_000_000, SINKS)
    assert bench.heard == [("watermark", each) for each in (3.0, 4.0, 5.0, 9.0)]


def test_markers_go_to_the_tasks_that_data_is_routed_to() -> None:
    """A task that an update still prepares, or removes, gets nothing else either."""
    sinks = (4, 5, 6)
    bench = BoltBench(plan_of(1, sinks=sinks, update=replace(UPDATE, phase=UpdatePhase.PREPARE, added=(6,))))
    assert bench.put(watermark(1, 1), watermark(2, 1))[-1] == ("WATERMARK", 1, (4, 5))
    bench.runner.handle(PlanReceived(plan_of(2, sinks=sinks, update=replace(UPDATE, added=(6,), removed=(4,)))))
    assert bench.put(watermark(1, 2), watermark(2, 2))[-1] == ("WATERMARK", 2, (5, 6))


def restored(version: int) -> PhysicalPlan:
    """A plan after a restore that the plan version 2 ordered."""
    return plan_of(version, checkpoints=CheckpointPlan(restores=1, since=2))


def test_a_closed_channel_parks_its_watermarks() -> None:
    """What comes behind the marker of a checkpoint belongs to the time after it, also for the state of the bolt."""
    bench = BoltBench(plan_of(checkpoints=CheckpointPlan()), CheckpointArchive(MemoryCheckpointStore(), "t"))
    assert bench.put(watermark(1, 1), checkpoint(1), watermark(1, 9), watermark(2, 5))[-1] == ("WATERMARK", 1, SINKS)
    assert bench.put(checkpoint(2)) == [("CHECKPOINT", 1, SINKS)]
    assert bench.put(values(2, "x")) == ["until 5e-06", "aside 5e-06", ("WATERMARK", 5, SINKS), "x"]


def test_a_restore_begins_without_a_watermark_and_drops_former_ones() -> None:
    """Spouts read again from an earlier position, so earlier times come again."""
    bench = BoltBench(plan_of(checkpoints=CheckpointPlan()), CheckpointArchive(MemoryCheckpointStore(), "t"))
    bench.put(watermark(1, 8), watermark(2, 8))
    bench.runner.handle(PlanReceived(restored(2)))
    assert "watermark" not in {each.name for each in bench.task.telemetry.record(bench.runner.emitter).metrics}
    assert bench.put(watermark(1, 9), watermark(2, 9)) == []
    assert bench.heard == []
    assert bench.put(watermark(1, 3, version=2), watermark(2, 4, version=2))[-1] == ("WATERMARK", 3, SINKS)
    assert bench.put(watermark(1, 6, version=3)) == []  # it waits for the plan
    bench.runner.handle(PlanReceived(restored(3)))
    assert bench.put(watermark(2, 4, version=3))[-1] == ("WATERMARK", 4, SINKS)


class Telling(Spout):
    """Emits two rows and watermarks between them, as `script` says, in one call."""

    script: tuple[object, ...] = ()

    def next_tuple(self) -> None:
        for each in self.script:
            if isinstance(each, str):
                self.emit([each], stream="side" if each.startswith("side") else "default")
            elif isinstance(each, tuple):
                self.emit_watermark(each[0], idle=True)
            else:
                self.emit_watermark(each)  # type: ignore[arg-type]  # a number
        self.end()


def spout_runner(*script: object, plan: PhysicalPlan | None = None) -> SpoutRunner:
    spec, settings = instance_spec("spout", 1), EngineSettings()
    task = Task(spec, settings, Gateway(spec, settings), plan or plan_of())
    runner = SpoutRunner(task, When(lambda: runner.ended), type("Told", (Telling,), {"script": script}))
    runner.run(ended=False)
    return runner


def test_a_spouts_watermarks_are_in_order_behind_its_rows_of_all_streams() -> None:
    """The rows before a watermark may be waiting for a flush."""
    left = output(spout_runner("a", "side b", 1.5, "c", (2.0,), "d"))
    bolts = (BOLT,)
    assert left == [
        "a",
        "side b",
        ("WATERMARK", 1_500_000, bolts),
        "c",
        ("IDLE", 2_000_000, bolts),
        "d",
        ("END", 0, bolts),
    ]


def test_a_spouts_watermark_never_decreases_and_is_repeated() -> None:
    """An equal time is sent again: a restarted task hears of it. A change of idle is news at any time."""
    left = output(spout_runner(2.0, 2.0, 1.0, (0.5,), -3.0))
    kinds = ["WATERMARK", "WATERMARK", "WATERMARK", "IDLE", "WATERMARK"]
    assert left == [*((kind, 2_000_000, (BOLT,)) for kind in kinds), ("END", 0, (BOLT,))]


def test_a_spouts_time_must_be_a_number(capsys: pytest.CaptureFixture[str]) -> None:
    """The call raises in the author's line, and nothing is sent."""

    class Wrong(Telling):
        def next_tuple(self) -> None:
            with pytest.raises(EmitError, match="not a finite number of seconds"):
                self.emit_watermark(float("nan"))
            self.end()

    spec, settings = instance_spec("spout", 1), EngineSettings()
    task = Task(spec, settings, Gateway(spec, settings), plan_of())
    runner = SpoutRunner(task, When(lambda: runner.ended), Wrong)
    runner.run(ended=False)
    assert output(runner) == [("END", 0, (BOLT,))]
    assert capsys.readouterr().err == ""


def test_a_restored_spout_may_begin_with_an_earlier_time() -> None:
    """Its component is new and reads again from the checkpoint."""
    spec, settings = instance_spec("spout", 1), EngineSettings()
    archive = CheckpointArchive(MemoryCheckpointStore(), "t")
    task = Task(spec, settings, Gateway(spec, settings), plan_of(checkpoints=CheckpointPlan()), archive)
    runner = SpoutRunner(task, When(lambda: True), Telling)
    runner.run(ended=False)
    runner.component.emit_watermark(9.0)
    runner.handle(PlanReceived(restored(2)))
    output(runner)
    runner.component.emit_watermark(4.0)
    assert output(runner) == [("WATERMARK", 4_000_000, (BOLT,))]
