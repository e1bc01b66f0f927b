"""What waits for one task, and whose credit waits with it.

Every destination has an outlet: the segments that its session's credit does not let through yet. Above the high
watermark the task is a culprit, until the outlet is below the low one: the spouts that feed it are held back. Bolts go
on, as what they have in work must leave; only above the hard limit does nobody get credit back for what he sends here
(the outlet holds the release). So an outlet holds at most the hard limit plus one window of each producer, and nothing
is dropped. Nobody waits in a circle, because a topology has no cycle and the credit between two stream managers is
counted per destination task (design D6).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Protocol

from heron.ipc.credit import CreditWindow

__all__ = ["SEGMENT_BYTES", "HeldRelease", "Outlet", "Releasable", "Segment", "Watermarks"]

Segment = bytes | memoryview

SEGMENT_BYTES = 64
"""What a segment takes beside its own bytes (measured): many small ones would else fill memory without counting."""


@dataclass(frozen=True, slots=True)
class Watermarks:
    """When a task is a culprit, when it no longer is, and when no more is wanted for it; ascending, bytes.

    `segment_bytes` is what each segment counts beside its length.
    """

    low_bytes: int
    high_bytes: int
    hard_bytes: int
    segment_bytes: int = 0


class Releasable(Protocol):
    """The producer side of a link, as an outlet sees it."""

    def release(self, size_bytes: int) -> None:
        """So much of what it sent no longer takes room here."""
        ...


@dataclass(slots=True)
class HeldRelease:
    """Credit that is kept back from a producer, and the other full outlets that its frame went to."""

    producer: Releasable
    size_bytes: int
    others: list[Outlet] = field(default_factory=list)


class Outlet:
    """The segments for one task, in order."""

    __slots__ = ("_held", "_marks", "congested", "full", "queue", "queued_bytes", "task_id", "window")

    def __init__(self, task_id: int, marks: Watermarks) -> None:
        self.task_id = task_id
        self.queue: deque[Segment] = deque()
        self.queued_bytes = 0
        self.window: CreditWindow | None = None  # None: no session, so everything waits
        self.congested = False  # from the high watermark to the low one
        self.full = False  # from the hard limit to the high watermark
        self._marks = marks
        self._held: list[HeldRelease] = []

    @property
    def taken_bytes(self) -> int:
        """What the watermarks are compared with."""
        return self.queued_bytes + self._marks.segment_bytes * len(self.queue)

    def put(self, segment: Segment) -> None:
        """Appends a segment."""
        self.queue.append(segment)
        self.queued_bytes += len(segment)
        marks, taken_bytes = self._marks, self.taken_bytes
        if taken_bytes > marks.high_bytes:
            self.congested = True
            self.full = self.full or taken_bytes > marks.hard_bytes

    def ready(self) -> Segment | None:
        """The first segment, when credit lets it through now; it stays."""
        if self.window is None or not self.queue:
            return None
        head = self.queue[0]
        return head if self.window.allows(len(head)) else None

    def pop(self, sent_bytes: int) -> Segment:
        """Takes the first segment, spending credit for what is sent of it; only after `ready`.

        That is less than the segment's length where it is sent with fewer destinations: the receiver counts what comes.
        """
        assert self.window is not None  # noqa: S101  # `ready` has seen it
        segment = self.queue.popleft()
        self.queued_bytes -= len(segment)
        self.window.spend(sent_bytes)
        if self.congested and (taken_bytes := self.taken_bytes) <= self._marks.high_bytes:
            self.full = False
            self.congested = taken_bytes > self._marks.low_bytes
        return segment

    def hold(self, release: HeldRelease) -> None:
        """Keeps back a producer's credit until this outlet is no longer full."""
        self._held.append(release)

    def unheld(self) -> list[HeldRelease]:
        """What was kept back, once there is room; empty before."""
        if self.full or not self._held:
            return []
        held, self._held = self._held, []
        return held

    def holds(self, producer: Releasable) -> bool:
        """Whether credit is kept back from that producer."""
        return any(release.producer is producer for release in self._held)

    def forget(self, producer: Releasable) -> None:
        """Drops what is kept back for a producer that is gone."""
        self._held = [release for release in self._held if release.producer is not producer]

    def open(self, window_bytes: int) -> None:
        """A session of the task has begun."""
        self.window = CreditWindow(window_bytes)

    def close(self) -> None:
        """The task's session has ended; what waits, waits on."""
        self.window = None
