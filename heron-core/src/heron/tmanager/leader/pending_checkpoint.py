"""The checkpoint under way: from its order until its manifest is stored, or until it is abandoned. Pure."""

from __future__ import annotations

from collections.abc import Collection

from heron.checkpoints.manifest import CheckpointManifest, TaskSnapshot
from heron.clock import Clock
from heron.tmanager.leader.checkpoint_run import CheckpointRun

__all__ = ["PendingCheckpoint"]


class PendingCheckpoint:
    """What the tasks have saved for one checkpoint, and its manifest when all of them have."""

    __slots__ = ("after_end", "is_storing", "manifest", "number", "ordered_s", "saved")

    def __init__(self, number: int, ordered_s: float, *, after_end: bool) -> None:
        """`after_end`: all tasks had ended when it was ordered."""
        self.number = number
        self.ordered_s = ordered_s
        self.after_end = after_end
        self.saved: dict[int, TaskSnapshot] = {}
        self.manifest: CheckpointManifest | None = None
        self.is_storing = False

    def missing(self, task_ids: Collection[int]) -> list[int]:
        """Those of these tasks that have not saved."""
        return sorted(set(task_ids) - self.saved.keys())

    def make_manifest(self, run: CheckpointRun, task_ids: Collection[int], clock: Clock) -> None:
        """Makes the manifest, when all these tasks have saved."""
        self.manifest = CheckpointManifest(
            topology=run.topology,
            run=run.run,
            number=self.number,
            taken_at_s=clock.wall_s(),
            duration_s=clock.monotonic_s() - self.ordered_s,
            key_groups=run.key_groups,
            tasks=tuple(self.saved[task_id] for task_id in sorted(task_ids)),
        )

    def take_manifest(self) -> CheckpointManifest | None:
        """The manifest to store now, once."""
        if self.manifest is None or self.is_storing:
            return None
        self.is_storing = True
        return self.manifest
