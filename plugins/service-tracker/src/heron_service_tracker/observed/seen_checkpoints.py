"""The checkpoints of a topology that its statuses told of: the complete and the failed ones. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from heron_cli.client import TopologyStatus

__all__ = ["SeenCheckpoint", "SeenCheckpoints", "checkpoints_after"]

_KEPT = 200  # an hour and a half with an interval of 30 s


@dataclass(frozen=True, slots=True)
class SeenCheckpoint:
    """A checkpoint that is complete, or that failed (`error`). `at_s` are wall-clock seconds; the rest as in a status.

    A failed one has no figures, and of an earlier topology manager no number (0).
    """

    number: int
    at_s: float
    error: str = ""
    duration_s: float = 0.0
    size_bytes: int = 0
    align_s: float = 0.0
    slowest_task: int = 0


SeenCheckpoints = tuple[SeenCheckpoint, ...]
"""Oldest first, at most 200."""


def checkpoints_after(
    seen: SeenCheckpoints, before: TopologyStatus | None, now: TopologyStatus, at_s: float
) -> SeenCheckpoints:
    """Return the checkpoints with those that are new in a status; `at_s` is the time of the status."""
    present = now.checkpoints
    former = before.checkpoints if before else None
    if present is None or present == former:
        return seen
    found = []
    if former is not None and present.failed and present.failed != former.failed:  # a new leader counts from 0
        found.append(SeenCheckpoint(present.failed_number, at_s, present.last_error))
    if present.completed_at_s and (former is None or present.complete > former.complete):
        found.append(
            SeenCheckpoint(
                present.complete,
                present.completed_at_s,
                duration_s=present.duration_s,
                size_bytes=present.size_bytes,
                align_s=present.align_s,
                slowest_task=present.slowest_task,
            )
        )
    return (*seen, *sorted(found, key=lambda each: each.number))[-_KEPT:] if found else seen
