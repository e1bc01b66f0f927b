"""The checkpoints of a topology, as the tracker answers them. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from heron.driver_kit.redaction import redact_for_command
from heron_cli.client import ListedCheckpoint
from heron_service_tracker.observed.seen_checkpoints import SeenCheckpoint

__all__ = [
    "CheckpointItem",
    "CheckpointsAnswer",
    "SavedTaskItem",
    "StoredCheckpointItem",
    "StoredCheckpoints",
    "StoredCheckpointsAnswer",
    "checkpoint_item",
    "stored_answer",
    "stored_checkpoints",
]


class CheckpointItem(msgspec.Struct, frozen=True):
    """A checkpoint that the tracker saw: `state` is ``complete`` or ``failed``, with the reason in `reason`.

    The `number` of a failed one is 0 if the topology manager is of a version that does not tell it.
    `align_s` is the longest time that a task held data back for it, and `slowest_task` the task that took longest.
    """

    number: int
    state: str
    at_s: float
    duration_s: float
    size_bytes: int
    align_s: float
    slowest_task: int
    reason: str


class CheckpointsAnswer(msgspec.Struct, frozen=True):
    """A page of the newest 200 checkpoints since the tracker began, the newest first."""

    items: tuple[CheckpointItem, ...]
    total: int
    next_offset: int | None
    age_s: float
    error: str


class SavedTaskItem(msgspec.Struct, frozen=True):
    """The state of a task in a checkpoint: its size, and what the task wrote for this checkpoint.

    `key_groups` is the number of key groups with state. `ended`: the task had sent all of its output.
    """

    component: str
    task_id: int
    size_bytes: int
    written_bytes: int
    key_groups: int
    align_s: float
    save_s: float
    ended: bool


class StoredCheckpointItem(msgspec.Struct, frozen=True):
    """A complete checkpoint in the store; its id is ``RUN/NUMBER``.

    `damage` says why it cannot be read, and `unread` why it was not read yet; then its values are 0.
    """

    id: str
    taken_at_s: float
    duration_s: float
    size_bytes: int
    written_bytes: int
    align_s: float
    tasks: int
    damage: str
    unread: str = ""


class StoredCheckpointsAnswer(msgspec.Struct, frozen=True):
    """The newest 20 checkpoints in the store, of all runs, newest first.

    `tasks` are those of the checkpoint `shown`; "" when the wanted one is not among them.
    """

    items: tuple[StoredCheckpointItem, ...]
    shown: str
    tasks: tuple[SavedTaskItem, ...]
    age_s: float = 0.0
    error: str = ""


@dataclass(frozen=True, slots=True)
class StoredCheckpoints:
    """What was read of the store: the checkpoints, the newest one that can be read, and the tasks by checkpoint."""

    items: tuple[StoredCheckpointItem, ...]
    newest: str
    tasks: Mapping[str, tuple[SavedTaskItem, ...]]


def checkpoint_item(seen: SeenCheckpoint) -> CheckpointItem:
    """A checkpoint in a list."""
    return CheckpointItem(
        number=seen.number,
        state="failed" if seen.error else "complete",
        at_s=seen.at_s,
        duration_s=seen.duration_s,
        size_bytes=seen.size_bytes,
        align_s=seen.align_s,
        slowest_task=seen.slowest_task,
        reason=seen.error,
    )


def stored_checkpoints(found: Sequence[ListedCheckpoint]) -> StoredCheckpoints:
    """Sum up what was read. It takes a tenth of a second for many tasks, so it is no work for an event loop."""
    return StoredCheckpoints(
        items=tuple(map(_stored_item, found)),
        newest=next((str(each.id) for each in found if each.newest), ""),
        tasks={str(each.id): _task_items(each) for each in found},
    )


def stored_answer(stored: StoredCheckpoints, wanted: str) -> StoredCheckpointsAnswer:
    """Return the answer with the tasks of one checkpoint; "" means the newest one that can be read."""
    shown = wanted or stored.newest
    return StoredCheckpointsAnswer(stored.items, shown if shown in stored.tasks else "", stored.tasks.get(shown, ()))


def _task_items(listed: ListedCheckpoint) -> tuple[SavedTaskItem, ...]:
    return tuple(
        SavedTaskItem(
            component=each.component,
            task_id=each.task_id,
            size_bytes=sum(place.size_bytes for place in each.places()),
            written_bytes=each.written_bytes,
            key_groups=len(each.groups),
            align_s=each.align_s,
            save_s=each.save_s,
            ended=each.ended,
        )
        for each in (listed.manifest.tasks if listed.manifest else ())
    )


def _stored_item(each: ListedCheckpoint) -> StoredCheckpointItem:
    made = each.manifest
    if made is None:
        return StoredCheckpointItem(str(each.id), 0.0, 0.0, 0, 0, 0.0, 0, redact_for_command(each.damage), each.unread)
    return StoredCheckpointItem(
        id=str(each.id),
        taken_at_s=made.taken_at_s,
        duration_s=made.duration_s,
        size_bytes=made.size_bytes(),
        written_bytes=sum(task.written_bytes for task in made.tasks),
        align_s=max((task.align_s for task in made.tasks), default=0.0),
        tasks=len(made.tasks),
        damage="",
    )
