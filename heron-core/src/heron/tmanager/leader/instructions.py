"""The instructions of the leader, which `heron.tmanager.topology_manager` carries out."""

from __future__ import annotations

from dataclasses import dataclass, field

from heron.checkpoints.manifest import CheckpointManifest
from heron.ipc.documents.status import TopologyStatus
from heron.planner.packing_plan import PackingPlan
from heron.planner.physical_plan import PhysicalPlan

__all__ = ["EndTopology", "Instruction", "NoteEvent", "NotifyHook", "PublishPlan", "SendPlan", "StoreManifest"]


@dataclass(frozen=True, slots=True)
class PublishPlan:
    """Write this plan and its packing plan, then send them to every stream manager and executor."""

    plan: PhysicalPlan
    packing: PackingPlan


@dataclass(frozen=True, slots=True)
class SendPlan:
    """Send this plan to the stream manager of one container, after it is written."""

    container_id: int
    plan: PhysicalPlan


@dataclass(frozen=True, slots=True)
class EndTopology:
    """Write the report and stop every container."""

    report: TopologyStatus
    reason: str


@dataclass(frozen=True, slots=True)
class StoreManifest:
    """Store the manifest of a checkpoint, and report the outcome to the leader.

    With `keeps_older`, no older checkpoint is removed: tasks that start for an update may be loading one.
    """

    manifest: CheckpointManifest
    keeps_older: bool = False


@dataclass(frozen=True, slots=True)
class NoteEvent:
    """Write this into the event log."""

    name: str
    subject: str
    attributes: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NotifyHook:
    """Notify the observers."""

    hook: str
    facts: dict[str, object] = field(default_factory=dict)


Instruction = PublishPlan | SendPlan | StoreManifest | EndTopology | NoteEvent | NotifyHook
