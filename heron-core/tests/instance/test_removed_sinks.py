"""A two-phase sink that an update removes: it discards what belongs to no checkpoint."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heron.api import Bolt, ITwoPhaseStatefulComponent, Tuple
from heron.checkpoints.archive import CheckpointArchive
from heron.checkpoints.manifest import CheckpointManifest, TaskSnapshot
from heron.driver_kit.signals import Signals
from heron.instance.bolt_runner import BoltRunner
from heron.instance.gateway.gateway import Gateway
from heron.instance.queues.data_queue import PlanReceived
from heron.instance.task import Task
from heron.ipc.frames.frame import FRAME_HEADER_BYTES
from heron.kernel.settings import EngineSettings
from heron.planner.key_group import key_groups_of
from heron.planner.physical_plan import CheckpointPlan, PhysicalPlan, PlanUpdate, UpdatePhase
from heron_testing.builders import bolt, physical_plan, spout, stream, subscription, topology
from heron_testing.memory_checkpoints import MemoryCheckpointStore
from parts import data_frame, instance_spec, tuple_segment

calls: list[str] = []


class SinkBolt(Bolt, ITwoPhaseStatefulComponent):
    """Notes its calls."""

    def __init__(self, **arguments: object) -> None:
        super().__init__(**arguments)  # type: ignore[arg-type]  # the engine's own arguments
        calls.append("made")

    def process(self, tup: Tuple) -> None:
        calls.append(str(tup.values[0]))

    def pre_restore(self, checkpoint_id: str) -> None:
        calls.append(f"pre_restore {checkpoint_id}")

    def post_save(self, checkpoint_id: str) -> None:
        """Not called."""

    def close(self) -> None:
        calls.append("close")


class Stopped(Signals):
    """The executor asks the process to stop when the queue has this many items or fewer; catches nothing."""

    def __init__(self, gateway: Gateway, left: int) -> None:
        self._gateway, self._left = gateway, left

    @property
    def stop_requested(self) -> bool:
        return len(self._gateway.data_in._items) <= self._left


def plan_of(version: int, orders: CheckpointPlan, sinks: tuple[int, ...], update: PlanUpdate | None) -> PhysicalPlan:
    definition = topology(
        spout("spout", stream("v")), bolt("sink", subscription("spout"), parallelism=len(sinks)), name="t"
    )
    plan = physical_plan(definition, {"spout": (1,), "sink": sinks}, version=version)
    return replace(plan, checkpoints=orders, update=update)


@pytest.mark.parametrize(
    ("left", "before"), [(0, ["counted"]), (3, [])], ids=["the plan comes first", "the signal comes first"]
)
def test_a_removed_sink_is_restored_once_more_and_gets_no_tuple(left: int, before: list[str]) -> None:
    """Its own output since checkpoint 2 is written by other tasks: the topology goes on from that checkpoint."""
    calls.clear()
    prepared = plan_of(5, CheckpointPlan(2, 2), (2, 3), PlanUpdate(4, UpdatePhase.PREPARE, "target", removed=(2,)))
    complete = plan_of(6, CheckpointPlan(2, 2, 1, "t-1/2", since=6), (3,), None)
    archive = CheckpointArchive(MemoryCheckpointStore(), "t")
    groups = key_groups_of(prepared.topology)
    archive.save_manifest(CheckpointManifest("t", "t-1", 2, 0.0, 0.0, groups, (TaskSnapshot(2, "sink"),)))
    spec, settings = instance_spec("sink", 2), EngineSettings()
    gateway = Gateway(spec, settings)
    for item in ("counted", PlanReceived(complete), "too late"):
        if isinstance(item, str):
            frame = data_frame(tuple_segment([(item,)], (2,), plan_version=5))
            gateway.data_in.put(frame, len(frame) - FRAME_HEADER_BYTES)
        else:
            gateway.data_in.put(item)
    task = Task(spec, settings, gateway, prepared, archive)
    BoltRunner(task, Stopped(gateway, left), SinkBolt).run(ended=False)
    assert calls == ["made", "pre_restore 2", *before, "close", "made", "pre_restore 2", "close"]
