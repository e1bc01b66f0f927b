"""A leader of a topology with checkpoints, to which a test reports what its processes would report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import msgspec

from heron.api.api_constants import (
    TOPOLOGY_RELIABILITY_MODE,
    TOPOLOGY_STATEFUL_CHECKPOINT_INTERVAL_SECONDS,
    TopologyReliabilityMode,
)
from heron.api.definition import TopologyDefinition
from heron.checkpoints.manifest import CheckpointManifest, TaskSnapshot
from heron.ipc.documents.status import CheckpointStatus, LeaderStatus
from heron.kernel.settings import EngineSettings
from heron.planner.packing_plan import PackingPlan
from heron.planner.physical_plan import CheckpointPlan, StreamManagerLocation, UpdatePhase
from heron.tmanager.leader.checkpoint_progress import CheckpointEvent, CheckpointReport
from heron.tmanager.leader.instructions import EndTopology, Instruction, PublishPlan, StoreManifest
from heron.tmanager.leader.leader import Leader
from heron.tmanager.leader.task_table import TaskEvent, TaskReport
from heron.tmanager.leader.topology_state import Takeover
from heron_testing.fake_clock import FakeClock

__all__ = ["INTERVAL_S", "SETTLE_S", "TIMEOUT_S", "Leading", "with_checkpoints", "working"]

INTERVAL_S = 10.0
TIMEOUT_S = 60.0
SETTLE_S = 0.2


class Leading:
    """A leader of a topology with checkpoints, and what it has published last."""

    def __init__(self, given: Takeover, clock: FakeClock) -> None:
        self.given, self.clock = given, clock
        settings = EngineSettings(checkpoint_timeout_s=TIMEOUT_S, update_prepare_s=20.0)
        self.leader = Leader(given, settings, clock)
        self.plan = given.plan
        self.packing = given.packing
        self.manifests: list[CheckpointManifest] = []
        self.ended = False
        self.incarnations: dict[int, int] = {}
        self.carry_out(self.leader.begin())

    def carry_out(self, instructions: list[Instruction]) -> None:
        """Remember what the service would carry out."""
        for each in instructions:
            if isinstance(each, PublishPlan):
                self.plan, self.packing = each.plan, each.packing
            elif isinstance(each, StoreManifest):
                self.manifests.append(each.manifest)
            elif isinstance(each, EndTopology):
                self.ended = True

    def register(self, container_id: int, incarnation: int = 1, losses: int = 0) -> None:
        """A stream manager registers."""
        location = StreamManagerLocation(container_id, incarnation, f"ipc:///c{container_id}", "here", incarnation)
        self.carry_out(self.leader.stmgr_registered(location, losses))

    def send_heartbeat(
        self, container_id: int, incarnation: int, losses: int, by_task: Mapping[int, int] | None = None
    ) -> None:
        """A stream manager sends a heartbeat, and the leader then decides what is due."""
        self.carry_out(self.leader.stmgr_heard(container_id, incarnation, losses, by_task))
        self.pass_time()

    def pass_time(self, after_s: float = 0.0) -> None:
        """Time passes, and the leader checks what is due."""
        self.clock.advance(after_s)
        self.carry_out(self.leader.check_due())

    def works(self, *tasks: int, event: TaskEvent = TaskEvent.INITIALISED) -> None:
        """Tasks run, or have ended, since the last restore."""
        for task in tasks:
            incarnation = self.incarnations.setdefault(task, 1)
            report = TaskReport(task, incarnation, event, restores=self.restores_of(task))
            self.carry_out(self.leader.task_reported(report))

    def report(self, event: CheckpointEvent, number: int, *tasks: int, error: str = "", restores: int = -1) -> None:
        """Tasks report about a checkpoint."""
        for task in tasks:
            snapshot = TaskSnapshot(task, self.component(task)) if event is CheckpointEvent.SAVED else None
            since = self.restores_of(task) if restores < 0 else restores
            incarnation = self.incarnations.get(task, 1)
            report = CheckpointReport(task, incarnation, since, number, event, snapshot, error)
            self.carry_out(self.leader.checkpoint_reported(report))

    def take(self, *tasks: int) -> int:
        """A checkpoint is ordered, saved, stored and committed; returns its number."""
        self.pass_time(INTERVAL_S)
        number = self.ordered.number
        self.report(CheckpointEvent.SAVED, number, *tasks)
        self.carry_out(self.leader.manifest_stored(number))
        self.report(CheckpointEvent.COMMITTED, number, *tasks)
        return number

    def successor(self) -> Leading:
        """The leader that takes over what was published last."""
        leader = msgspec.structs.replace(self.given.leader, epoch=self.given.leader.epoch + 1)
        given = replace(self.given, leader=leader, former_epoch=leader.epoch - 1, plan=self.plan, packing=self.packing)
        return Leading(given, self.clock)

    def component(self, task_id: int) -> str:
        """The component of a member."""
        return next(each.component for _, each in self.packing.instances() if each.task_id == task_id)

    def restores_of(self, task_id: int) -> int:
        """The number of the last restore that the newest plan orders for a task."""
        assert self.plan is not None
        orders = self.plan.checkpoints_of(self.component(task_id))
        assert orders is not None
        return orders.restores

    @property
    def ordered(self) -> CheckpointPlan:
        """What the newest plan orders."""
        assert self.plan is not None
        assert self.plan.checkpoints is not None
        return self.plan.checkpoints

    @property
    def phase(self) -> UpdatePhase | None:
        """The phase of the update in the newest plan."""
        return self.plan.update.phase if self.plan is not None and self.plan.update is not None else None

    @property
    def version(self) -> int:
        """The version of the newest plan."""
        assert self.plan is not None
        return self.plan.version

    @property
    def status(self) -> CheckpointStatus:
        """The checkpoints for people."""
        found = self.leader.known.checkpoint_status()
        assert found is not None
        return found


def with_checkpoints(definition: TopologyDefinition, packing: PackingPlan) -> Takeover:
    """What a first leader finds of a topology that takes checkpoints."""
    config = {
        **definition.config,
        TOPOLOGY_RELIABILITY_MODE: TopologyReliabilityMode.EFFECTIVELY_ONCE,
        TOPOLOGY_STATEFUL_CHECKPOINT_INTERVAL_SECONDS: INTERVAL_S,
    }
    leader = LeaderStatus(1, 77, "here", 5, 1_700_000_100.0)
    return Takeover(replace(definition, config=config), packing, "wc-1", leader, 1_700_000_000.0)


def working(given: Takeover, clock: FakeClock) -> Leading:
    """A leader whose two containers are there and whose three tasks run."""
    found = Leading(given, clock)
    found.register(1)
    found.register(2)
    found.works(1, 2, 3)
    return found
