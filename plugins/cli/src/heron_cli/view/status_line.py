"""The status of a topology in one line, for logs, pipes and the live table."""

from __future__ import annotations

from heron.ipc.documents.status import ComponentStatus, Culprit, TopologyStatus
from heron_cli.view.text import format_bytes, format_count

__all__ = ["format_pressure", "format_state", "status_line"]

_STARTING = "starting"  # a task before the end of its `initialize`, which may start another program


def format_pressure(culprit: Culprit, wall_s: float) -> str:
    """``back pressure by count/5 for 12.3 s: the task is slow``; `wall_s` is the time now."""
    for_s = max(0.0, wall_s - culprit.since_s)
    why = f": {culprit.cause}" if culprit.cause else ""
    return f"back pressure by {culprit.component}/{culprit.task_id} for {for_s:.1f} s{why}"


def status_line(status: TopologyStatus, wall_s: float) -> str:
    """Return the status as one line; `wall_s` is the time now."""
    parts = [_component(each) for each in status.components]
    parts += [format_pressure(each, wall_s) for each in status.backpressure]
    return f"{status.topology} {format_state(status)}: {'; '.join(parts)}"


def format_state(status: TopologyStatus) -> str:
    """``running``, or ``running, 2 of 3 tasks are starting``."""
    count = sum(each.state == _STARTING for each in status.tasks)
    return f"{status.state}, {count} of {len(status.tasks)} tasks are starting" if count else status.state


def _component(each: ComponentStatus) -> str:
    counts = [f"{format_count(each.executed)} executed"] if each.kind == "bolt" else []
    counts.append(f"{format_count(each.emitted)} emitted")
    if each.failed:
        counts.append(f"{format_count(each.failed)} failed")
    if each.shed:
        counts.append(f"{format_count(each.shed)} shed")
    queue = f", {format_bytes(each.queue_bytes)} queued" if each.queue_bytes else ""
    return f"{each.name} {', '.join(counts)} ({format_count(each.rate_per_s)}/s{queue})"
