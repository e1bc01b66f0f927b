"""What a bolt emits in `finish`, when its replay fails; and the bolt after a restore."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heron.api.bolt import Bolt
from heron.api.definition import StreamDefinition
from heron.api.stream import Stream
from heron.api.tuple import Tuple
from heron.checkpoints.archive import CheckpointArchive
from heron.clock import monotonic_s
from heron.driver_kit.signals import Signals
from heron.instance.bolt_runner import BoltRunner
from heron.instance.gateway.gateway import Gateway
from heron.instance.input.finish_roots import FinishRoots
from heron.instance.metrics.task_metrics import TaskMetrics
from heron.instance.output.emitter import BoltEmitter
from heron.instance.output.stream_routes import ChosenSplitter, StreamRoutes
from heron.instance.queues.data_queue import DataOut, PlanReceived, Sleeper
from heron.instance.task import Task
from heron.ipc.envelope import Envelope
from heron.ipc.frames.frame import FRAME_HEADER_BYTES, OptionTag, SegmentKind, option, parse_segment
from heron.ipc.frames.frame_limits import FrameLimits
from heron.ipc.wakeup import Wakeup
from heron.kernel.queue_capacity import QueueCapacity
from heron.kernel.settings import EngineSettings
from heron.planner.physical_plan import CheckpointPlan, PhysicalPlan
from heron_testing.builders import bolt, physical_plan, spout, stream, subscription, topology
from heron_testing.memory_checkpoints import MemoryCheckpointStore
from parts import data_frame, decoded_rows, end_marker, instance_spec, stream_origin, tuple_segment


class Login(Bolt):
    """Emits with its collector."""

    outputs = ("name", "password")


@pytest.mark.parametrize(
    ("stays", "record"), [(True, {"name": "ada", "password": "hunter2"}), (False, "2 values without names")]
)
def test_a_replay_that_fails_is_reported_with_names(stays: bool, record: object) -> None:
    """A value without its name could not be hidden; here the receiving task, or the stream, has left the plan."""
    told: list[object] = []
    origin = stream_origin()
    out = DataOut(Wakeup(), Sleeper(), QueueCapacity(1_000_000, 1_000_000, 0.1), FrameLimits(1_000_000))
    emitter = BoltEmitter(origin, out)
    roots = FinishRoots(emitter, TaskMetrics(), lambda *failure: told.append(failure[3]))

    def plan(*tasks: int) -> None:
        splitter = ChosenSplitter()
        routes = StreamRoutes(splitters=(splitter,), direct_picks=(splitter.picks,), direct_tasks=frozenset(tasks))
        definition = StreamDefinition("logins", ("name", "password"))
        emitter.set_streams([roots.make_stream(0, definition, routes, origin)] if tasks else [])

    component = Login(emitter)
    roots.begin(component, lambda: plan(4), print)
    component.emit(["ada", "hunter2"], stream="logins", direct_task=4)
    plan(*(5,) * stays)
    roots.lose_all()
    assert told == [record]


class Restored(Bolt):
    """Emits to a named stream, and in `finish`."""

    outputs = (Stream(["v"]), Stream(["v"], "side"))

    def process(self, tup: Tuple) -> None:
        self.emit(tup.values, stream="side", anchors=[tup])

    def finish(self) -> None:
        self.emit(["finish"])


class Stopping(Signals):
    """Asks to stop while `stops`; catches nothing."""

    def __init__(self) -> None:
        self.stops = True

    @property
    def stop_requested(self) -> bool:
        return self.stops


def test_a_bolt_that_is_restored_after_its_finish_anchors_again() -> None:
    """At least once with state: its tuples would leave their trees, and be lost with the next process."""
    definition = topology(
        spout("spout", stream("v")),
        bolt("bolt", subscription("spout"), outputs=(stream("v"), stream("v", name="side"))),
        bolt("sink", subscription("bolt"), subscription("bolt", stream="side")),
        config={"topology.reliability.mode": "ATLEAST_ONCE"},
    )

    def plan(version: int, orders: CheckpointPlan) -> PhysicalPlan:
        made = physical_plan(definition, {"spout": (1,), "bolt": (2,), "sink": (3,)}, version=version)
        return replace(made, checkpoints=orders)

    spec, settings = instance_spec("bolt", 2), EngineSettings()
    gateway = Gateway(spec, settings)
    archive = CheckpointArchive(MemoryCheckpointStore(), "t")
    signals = Stopping()
    runner = BoltRunner(Task(spec, settings, gateway, plan(1, CheckpointPlan()), archive), signals, Restored)
    runner.run(ended=False)
    signals.stops = False

    def put(segment: bytes) -> list[tuple[int, object, bool]]:
        """Stream, value and whether it is in a tree of each row that leaves for a segment."""
        frame = data_frame(segment)
        gateway.data_in.put(frame, len(frame) - FRAME_HEADER_BYTES)
        while gateway.data_in.queued_bytes():
            runner.work()
        runner._output.flush(monotonic_s())
        left = []
        while gateway.data_out.items:
            item = gateway.data_out.items.popleft()
            for data in () if isinstance(item, Envelope) else item[0]:
                head = parse_segment(data, 0)
                if head.kind == SegmentKind.TUPLES:
                    in_tree = OptionTag.BATCH_KEY in head.options
                    left += [(head.stream, row[0], in_tree) for row in decoded_rows(data)]
        return left

    assert put(end_marker((2,), 1)) == [(0, "finish", True)]
    runner.handle(PlanReceived(plan(2, CheckpointPlan(restores=1, since=2))))
    options = option(OptionTag.BATCH_KEY, bytes(8)) + option(OptionTag.ROOT_BASE, bytes(8))
    again = tuple_segment([("again",)], (2,), source_task=1, plan_version=2, options=options)
    assert put(again) == [(1, "again", True)]
