"""Events from two statuses of a topology, one after the other, and from a version of its plans. Pure.

Each checkpoint makes a new version of the plan, so neither a version nor a complete checkpoint is an event by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from heron_cli.client import TopologyStatus
from heron_service_tracker.observed.observed import ObservedVersion

__all__ = ["StatusEvent", "events_between", "plan_event"]

_ENDED_UPDATES = frozenset({"complete", "withdrawn"})
_CHANGES = 3  # sentences of a version in the text of its event; the list of versions has all of them


@dataclass(frozen=True, slots=True)
class StatusEvent:
    """A change: its kind, the task or process that it is about ("" is the topology), and a text for people."""

    kind: str
    subject: str
    text: str


def events_between(before: TopologyStatus | None, now: TopologyStatus) -> tuple[StatusEvent, ...]:
    """Return the changes between two statuses. A first status, or one of another run, is one event."""
    if before is None or before.topology_id != now.topology_id:
        return (StatusEvent("topology-seen", "", f"run {now.topology_id} is {now.state}"),)
    return (
        *_topology(before, now),
        *_processes(before, now),
        *_tasks(before, now),
        *_back_pressure(before, now),
        *_errors(before, now),
    )


def plan_event(version: ObservedVersion) -> StatusEvent:
    """The event of a version of the plans in which people see a change."""
    text = f"plan {version.version}: {'; '.join(version.changes[:_CHANGES])}"
    more = len(version.changes) - _CHANGES
    return StatusEvent("plan-changed", "", f"{text}; and {more} more changes" if more > 0 else text)


def _topology(before: TopologyStatus, now: TopologyStatus) -> Iterator[StatusEvent]:
    if before.state != now.state:
        yield StatusEvent("state-changed", "", f"from {before.state} to {now.state}")
    yield from _update(before, now)
    if before.leader and now.leader and before.leader.epoch != now.leader.epoch:
        place = f"container {now.leader.container_id} on {now.leader.host}"
        yield StatusEvent("leader-changed", "", f"the topology manager of {place} leads, epoch {now.leader.epoch}")
    if before.checkpoints and now.checkpoints:
        if now.checkpoints.failed and now.checkpoints.failed != before.checkpoints.failed:  # a new leader counts from 0
            number, why = now.checkpoints.failed_number, now.checkpoints.last_error
            yield StatusEvent("checkpoint-failed", "", f"checkpoint {number}: {why}" if number else why)
        if now.checkpoints.restores > before.checkpoints.restores:
            yield StatusEvent("restored", "", f"from {now.checkpoints.source or 'the empty state'}")


def _update(before: TopologyStatus, now: TopologyStatus) -> Iterator[StatusEvent]:
    former, present = before.update, now.update
    if present is None or (former and (former.number, former.phase) == (present.number, present.phase)):
        return
    began, ended = former is None or former.number != present.number, present.phase in _ENDED_UPDATES
    if began:
        tasks = f"tasks added: {len(present.added)}, removed: {len(present.removed)}"
        yield StatusEvent("update-began", "", f"update {present.number} to packing plan {present.target}; {tasks}")
    if ended or not began:
        why = f": {present.waits_for}" if present.waits_for and ended else ""
        yield StatusEvent(f"update-{present.phase}", "", f"update {present.number}{why}")


def _processes(before: TopologyStatus, now: TopologyStatus) -> Iterator[StatusEvent]:
    if before.processes == now.processes:
        return
    known = {(each.container_id, each.process): each for each in before.processes}
    for each in now.processes:
        former = known.get((each.container_id, each.process))
        subject = f"{each.process}-{each.container_id}"
        if former is not None and each.restarts > former.restarts:
            yield StatusEvent("process-restarted", subject, each.last_error or "it was restarted")
        elif former is not None and former.state != each.state:
            yield StatusEvent(f"process-{each.state}", subject, each.last_error)


def _tasks(before: TopologyStatus, now: TopologyStatus) -> Iterator[StatusEvent]:
    if before.tasks == now.tasks:
        return
    known = {each.task_id: each for each in before.tasks}
    present = {each.task_id for each in now.tasks}
    for each in now.tasks:
        former = known.get(each.task_id)
        subject = f"{each.component}-{each.task_id}"
        if former is None:
            yield StatusEvent("task-added", subject, f"in container {each.container_id}")
        elif former.state != each.state:
            yield StatusEvent(f"task-{each.state}", subject, each.last_error)
    for task_id, former in known.items():
        if task_id not in present:
            yield StatusEvent("task-removed", f"{former.component}-{task_id}", "it is not in the plan any more")


def _back_pressure(before: TopologyStatus, now: TopologyStatus) -> Iterator[StatusEvent]:
    was = {each.task_id: each for each in before.backpressure}
    present = {each.task_id: each for each in now.backpressure}
    for task_id, each in present.items():
        if task_id not in was:
            yield StatusEvent("back-pressure-began", f"{each.component}-{task_id}", each.cause)
    for task_id, each in was.items():
        if task_id not in present:
            yield StatusEvent("back-pressure-ended", f"{each.component}-{task_id}", "")


def _errors(before: TopologyStatus, now: TopologyStatus) -> Iterator[StatusEvent]:
    known = set(before.errors)
    for each in now.errors:
        if each not in known:
            yield StatusEvent("error", "", each)
