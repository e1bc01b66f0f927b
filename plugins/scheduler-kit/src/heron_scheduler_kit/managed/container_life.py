"""Decides about one container: from its record and the end of its executor to the next step of its launcher. Pure."""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace

from heron.errors import SchedulerError
from heron_scheduler_kit.managed.container_records import ContainerPhase, ContainerRecord
from heron_scheduler_kit.supervision import BackoffLimits, next_wait_s

__all__ = [
    "UNSEEN_END",
    "ExecutorEnd",
    "RestartLimits",
    "Step",
    "claimed",
    "ended",
    "next_step",
    "removed",
    "restarted",
]

UNSEEN_END = "its launcher or its machine was lost"
"""The reason of an end that no launcher has recorded; the cluster may know a better one."""


class Step(enum.Enum):
    """The next step of a launcher."""

    START = "start"
    """Claim the next attempt after the wait of the record, and start the executor."""
    STAY = "stay"
    """The executor runs, and should."""
    END = "end"
    """The executor runs, and must end in order."""
    REST = "rest"
    """No executor runs, and none should until the record changes."""
    REMOVE = "remove"
    """No executor runs; record that the container is removed."""
    LEAVE = "leave"
    """No executor runs, and the job was killed: end the launcher."""


@dataclass(frozen=True, slots=True)
class RestartLimits:
    """The waits before restarts, and the number of own failures in a row after which a container is given up."""

    waits: BackoffLimits
    limit: int


@dataclass(frozen=True, slots=True)
class ExecutorEnd:
    """How an executor ended: `error` is "" for exit code 0, `own` is whether it failed by its own fault."""

    error: str
    own: bool
    ran_s: float


def next_step(record: ContainerRecord | None, attempt: int) -> Step:
    """Return the next step of a launcher that runs this attempt, or 0 when its executor does not run.

    Without a record the job was killed. A record with a later attempt belongs to another copy of the container.
    """
    if attempt:
        theirs = record is None or record.attempts > attempt or not record.wanted or record.restarted >= attempt
        return Step.END if theirs else Step.STAY
    if record is None:
        return Step.LEAVE
    if record.phase is ContainerPhase.REMOVED:
        return Step.REST
    if not record.wanted:
        return Step.REMOVE
    if record.phase in {ContainerPhase.ENDED, ContainerPhase.GIVEN_UP}:
        return Step.REST
    return Step.START


def claimed(record: ContainerRecord, host: str) -> ContainerRecord:
    """Return the record with its next attempt, which runs on `host`; unchanged when none should start."""
    if next_step(record, 0) is not Step.START:
        return record
    lost = record.phase is ContainerPhase.RUNNING  # nobody has recorded the end of that attempt
    return replace(
        record,
        attempts=record.attempts + 1,
        phase=ContainerPhase.RUNNING,
        error=UNSEEN_END if lost else record.error,
        host=host,
    )


def ended(record: ContainerRecord, attempt: int, end: ExecutorEnd, limits: RestartLimits) -> ContainerRecord:
    """Return the record after the end of an attempt; unchanged when another copy has claimed a later one."""
    if record.attempts != attempt:
        return record
    if not record.wanted:
        return removed(record)
    if record.restarted >= attempt:  # a command asked for it
        return replace(record, phase=ContainerPhase.WAITING, faults=0, wait_s=0.0)
    if not end.error:
        return replace(record, phase=ContainerPhase.ENDED, error="")
    faults = (0 if end.ran_s >= limits.waits.stable_s else record.faults) + end.own
    error, phase = end.error, ContainerPhase.WAITING
    if end.own and 0 < limits.limit < faults:
        error = f"given up after {faults} failures in a row: {error}"
        phase = ContainerPhase.GIVEN_UP
    wait_s = next_wait_s(limits.waits, record.wait_s, end.ran_s)
    return replace(record, phase=phase, faults=faults, wait_s=wait_s, error=error)


def restarted(record: ContainerRecord) -> ContainerRecord:
    """Return the record with a request to end the present attempt and start the next one.

    Raises:
        SchedulerError: when the container has ended for good.
    """
    if record.phase in {ContainerPhase.ENDED, ContainerPhase.REMOVED}:
        name = f"container {record.container_id}"
        msg = f"{name} is {record.phase.value}; only a container that has not ended can restart"
        raise SchedulerError(msg)
    phase = ContainerPhase.WAITING if record.phase is ContainerPhase.GIVEN_UP else record.phase
    return replace(record, phase=phase, restarted=record.attempts, faults=0, wait_s=0.0)


def removed(record: ContainerRecord) -> ContainerRecord:
    """Return the record of a container whose executor has ended; unchanged unless a command has removed it."""
    return record if record.wanted else replace(record, phase=ContainerPhase.REMOVED)
