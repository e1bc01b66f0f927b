"""A bolt that an update prepares: what it would emit must not reach tasks that take part in the next checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from heron.api import Bolt, TopologyContext, Tuple
from heron.checkpoints.archive import CheckpointArchive
from heron.checkpoints.manifest import CheckpointManifest, TaskSnapshot
from heron.clock import monotonic_s
from heron.driver_kit.signals import Signals
from heron.instance.bolt_runner import BoltRunner
from heron.instance.gateway.gateway import Gateway
from heron.instance.queues.data_queue import PlanReceived
from heron.instance.task import Task
from heron.ipc.envelope import Envelope
from heron.ipc.frames.frame import SegmentKind, parse_segment
from heron.kernel.settings import EngineSettings
from heron.planner.key_group import key_groups_of
from heron.planner.physical_plan import CheckpointPlan, PhysicalPlan, PlanUpdate, UpdatePhase
from heron_testing.builders import bolt, physical_plan, spout, stream, subscription, topology
from heron_testing.memory_checkpoints import MemoryCheckpointStore
from parts import decoded_rows, instance_spec

PREPARE = PlanUpdate(4, UpdatePhase.PREPARE, "target", added=(3,), removed=(2,))

ticks: list[int] = []


class Eager(Bolt):
    """Emits whenever it is called."""

    outputs = ("value",)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        self.emit(["initialize"])

    def process(self, tup: Tuple) -> None:
        """Not called."""

    def process_tick(self, tup: Tuple) -> None:
        ticks.append(1)
        self.emit(["tick"])


class Restored(Signals):
    """The restore comes when several ticks were due; asks to stop after the first tick; catches nothing."""

    def __init__(self, gateway: Gateway, plan: PhysicalPlan) -> None:
        self._gateway, self._plan = gateway, plan
        self._restore_s = monotonic_s() + 0.1
        self.early: list[object] = []
        self.restored = False

    @property
    def stop_requested(self) -> bool:
        if not self.restored and monotonic_s() >= self._restore_s:
            self.early = [*ticks, *emitted(self._gateway)]
            self._gateway.data_in.put(PlanReceived(self._plan))
            self.restored = True
        return self.restored and bool(ticks)


def plan_of(
    version: int, orders: CheckpointPlan | None, bolts: tuple[int, ...], update: PlanUpdate | None
) -> PhysicalPlan:
    definition = topology(
        spout("spout", stream("v")),
        bolt(
            "bolt",
            subscription("spout"),
            outputs=(stream("value"),),
            parallelism=len(bolts),
            config={"topology.tick.tuple.freq.secs": 0.01},
        ),
        bolt("sink", subscription("bolt")),
        name="t",
    )
    plan = physical_plan(definition, {"spout": (1,), "bolt": bolts, "sink": (5,)}, version=version)
    return replace(plan, checkpoints=orders, update=update)


def emitted(gateway: Gateway) -> list[object]:
    """The values that have left the task."""
    found: list[object] = []
    while items := gateway.data_out.items:
        item = items.popleft()
        for data in () if isinstance(item, Envelope) else item[0]:
            if parse_segment(data, 0).kind == SegmentKind.TUPLES:
                found += [row[0] for row in decoded_rows(data)]
    return found


def test_nothing_that_a_prepared_bolt_emits_is_sent_before_its_restore() -> None:
    """It has the state of checkpoint 2, and emits the same again when it goes on from checkpoint 3."""
    ticks.clear()
    before = plan_of(5, CheckpointPlan(2, 2), (2, 3), PREPARE)
    after = plan_of(6, CheckpointPlan(3, 3, 1, "t-1/3", since=6), (3,), None)
    archive = CheckpointArchive(MemoryCheckpointStore(), "t")
    groups = key_groups_of(before.topology)
    for number in (2, 3):
        archive.save_manifest(CheckpointManifest("t", "t-1", number, 0.0, 0.0, groups, (TaskSnapshot(2, "bolt"),)))
    spec, settings = instance_spec("bolt", 3), EngineSettings()
    gateway = Gateway(spec, settings)
    signals = Restored(gateway, after)
    BoltRunner(Task(spec, settings, gateway, before, archive), signals, Eager).run(ended=False)
    assert signals.early == []
    assert emitted(gateway)[:1] == ["initialize"]
