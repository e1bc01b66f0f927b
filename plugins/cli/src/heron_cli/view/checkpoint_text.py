"""Checkpoints as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from heron.checkpoints.manifest import CheckpointManifest, TaskSnapshot
from heron.driver_kit.redaction import redact_for_command
from heron.ipc.documents.status import CheckpointStatus
from heron_cli.topologies.checkpoint_list import ListedCheckpoint
from heron_cli.view.text import columns, counted, format_age, format_bytes, format_time

__all__ = ["checkpoint_fields", "checkpoint_lines", "list_lines", "listed_fields", "status_lines"]


def list_lines(found: Sequence[ListedCheckpoint], wall_s: float) -> Iterator[str]:
    """Yield a table of checkpoints; damaged ones have the reason below."""
    rows = [("id", "age", "size", "tasks", "duration", "")]
    for each in found:
        if each.manifest is None:
            rows.append((str(each.id), "", "", "", "", "damaged"))
            continue
        made = each.manifest
        age, size = format_age(_age_s(made, wall_s)), format_bytes(made.size_bytes())
        mark = "newest" if each.newest else ""
        rows.append((str(each.id), age, size, str(len(made.tasks)), f"{made.duration_s:.2f} s", mark))
    yield from columns(rows)
    for each in found:
        if each.manifest is None:
            yield f"{each.id} is damaged: {redact_for_command(each.damage)}"


def listed_fields(each: ListedCheckpoint, wall_s: float) -> dict[str, object]:
    """Return an entry of ``heron checkpoints NAME list --json``; the values of a damaged checkpoint are null."""
    made = each.manifest
    return {
        "id": str(each.id),
        "taken_at_s": made.taken_at_s if made else None,
        "age_s": round(_age_s(made, wall_s), 1) if made else None,
        "size_bytes": made.size_bytes() if made else None,
        "tasks": len(made.tasks) if made else None,
        "duration_s": made.duration_s if made else None,
        "newest": each.newest,
        "damage": redact_for_command(each.damage),
    }


def checkpoint_lines(made: CheckpointManifest, wall_s: float) -> Iterator[str]:
    """Yield everything about one checkpoint."""
    age = format_age(_age_s(made, wall_s))
    yield (
        f"{made.id} of {made.topology}, taken {format_time(made.taken_at_s)} ({age} ago) in "
        f"{made.duration_s:.2f} s; {format_bytes(made.size_bytes())}, {made.key_groups} key groups"
    )
    rows = [("component", "task", "version", "size", "written", "groups", "init_state", "align", "save", "")]
    for each in sorted(made.tasks, key=lambda task: (task.component, task.task_id)):
        operator = format_bytes(each.operator.size_bytes) if each.operator else ""
        size, written = format_bytes(_size_bytes(each)), format_bytes(each.written_bytes)
        times = (f"{each.align_s:.3f} s", f"{each.save_s:.3f} s", "ended" if each.ended else "")
        groups = str(len(each.groups))
        rows.append((each.component, str(each.task_id), str(each.version), size, written, groups, operator, *times))
    yield from columns(rows)
    if slowest := _slowest(made):
        yield f"slowest task: {slowest.component}/{slowest.task_id}, {slowest.align_s + slowest.save_s:.3f} s"
    yield from (f"object: {name}" for name in sorted(made.objects()))


def checkpoint_fields(made: CheckpointManifest) -> dict[str, object]:
    """Return the document of ``heron checkpoints NAME show --json``; `slowest_task` is null without tasks."""
    slowest = _slowest(made)
    return {
        "id": str(made.id),
        "topology": made.topology,
        "taken_at_s": made.taken_at_s,
        "duration_s": made.duration_s,
        "size_bytes": made.size_bytes(),
        "key_groups": made.key_groups,
        "slowest_task": slowest.task_id if slowest else None,
        "tasks": [
            {
                "component": each.component,
                "task_id": each.task_id,
                "version": each.version,
                "ended": each.ended,
                "size_bytes": _size_bytes(each),
                "written_bytes": each.written_bytes,
                "groups": sorted(each.groups),
                "operator_bytes": each.operator.size_bytes if each.operator else None,
                "align_s": each.align_s,
                "save_s": each.save_s,
            }
            for each in made.tasks
        ],
        "objects": sorted(made.objects()),
    }


def status_lines(status: CheckpointStatus | None, wall_s: float) -> Iterator[str]:
    """Yield the newest complete checkpoint, failed ones, and restores."""
    if status is None:
        return
    waits = f"; checkpoint {status.number} waits for {status.waits_for}" if status.waits_for else ""
    if status.completed_at_s:
        age = format_age(max(0.0, wall_s - status.completed_at_s))
        size = format_bytes(status.size_bytes)
        yield f"checkpoint {status.complete} is complete for {age}, {size} in {status.duration_s:.2f} s{waits}"
    elif status.complete:
        yield f"checkpoint {status.complete} is complete{waits}"
    else:
        yield f"no checkpoint is complete yet{waits}"
    if status.failed:
        yield f"{counted(status.failed, 'checkpoint')} failed; the last one: {status.last_error}"
    if status.restores:
        source = f"from checkpoint {status.source}" if status.source else "from the beginning"
        loss = f": {status.last_loss}" if status.last_loss else ""
        yield f"{counted(status.restores, 'restore')}, the last one {source}{loss}"


def _age_s(made: CheckpointManifest, wall_s: float) -> float:
    return max(0.0, wall_s - made.taken_at_s)


def _size_bytes(task: TaskSnapshot) -> int:
    return sum(place.size_bytes for place in task.places())


def _slowest(made: CheckpointManifest) -> TaskSnapshot | None:
    return max(made.tasks, key=lambda each: each.align_s + each.save_s, default=None)
