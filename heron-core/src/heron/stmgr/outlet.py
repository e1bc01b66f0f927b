"""Outlets: the segments that wait for one task, and the credit that waits with them.

Every destination has an outlet. It holds the segments that the credit of the task's session does not allow yet. From
the high watermark to the low one the task is a culprit, and the spouts that feed it are throttled. Bolts continue,
because their pending work must leave them. Above the hard limit the outlet also holds releases, so no producer gets
credit back for data in it. An outlet therefore holds at most the hard limit plus one window of each producer, and drops
nothing; the router may drop tuples before (``topology.droptuples.upon.backpressure``). No cycle of waiting can form:
topologies have no cycles, and credit between two stream managers is counted for each destination task.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Protocol

from heron.ipc.link import CreditWindow

__all__ = [
    "JOIN_BYTES",
    "SEGMENT_BYTES",
    "HeldRelease",
    "Outlet",
    "Producer",
    "Segment",
    "Watermarks",
]

Segment = bytes | bytearray | memoryview
"""A bytearray has traced rows; see `heron.ipc.frames.trace_field`."""

JOIN_BYTES = 256 * 1024
"""The size up to which segments for one receiver are joined; larger ZeroMQ messages are not faster (measured)."""

SEGMENT_BYTES = 64
"""The memory that a queued segment takes beside its own bytes (measured). Small segments would not count otherwise."""


@dataclass(frozen=True, slots=True)
class Watermarks:
    """The sizes of an outlet at which its state changes, ascending, in bytes.

    A task becomes a culprit above `high_bytes` and stops being one at `low_bytes`. Above `hard_bytes` releases are
    held. Each segment counts its length and `segment_bytes`.
    """

    low_bytes: int
    high_bytes: int
    hard_bytes: int
    segment_bytes: int = 0


class Producer(Protocol):
    """The sending side of a link, as an outlet sees it."""

    def release(self, size_bytes: int) -> None:
        """Gives credit back for `size_bytes` that this producer sent."""
        ...


@dataclass(slots=True)
class HeldRelease:
    """Credit that is held back from a producer; `others` are the outlets that must also have room first."""

    producer: Producer
    size_bytes: int
    others: list[Outlet] = field(default_factory=list)


class Outlet:
    """The segments for one task, in order."""

    __slots__ = ("_held", "_marks", "congested", "full", "queue", "queued_bytes", "task_id", "window")

    def __init__(self, task_id: int, marks: Watermarks) -> None:
        self.task_id = task_id
        self.queue: deque[Segment] = deque()
        self.queued_bytes = 0
        self.window: CreditWindow | None = None  # None: the task has no session, so every segment waits
        self.congested = False  # from the high watermark to the low one
        self.full = False  # from the hard limit to the high watermark
        self._marks = marks
        self._held: list[HeldRelease] = []

    @property
    def taken_bytes(self) -> int:
        """The size that is compared with the watermarks."""
        return self.queued_bytes + self._marks.segment_bytes * len(self.queue)

    @property
    def unconfirmed_bytes(self) -> int:
        """The size of what was sent to the task and has not given its credit back."""
        return 0 if self.window is None else self.window.sent_bytes - self.window.released_bytes

    def put(self, segment: Segment) -> None:
        """Appends a segment."""
        self.queue.append(segment)
        self.queued_bytes += len(segment)
        marks, taken_bytes = self._marks, self.taken_bytes
        if taken_bytes > marks.high_bytes:
            self.congested = True
            self.full = self.full or taken_bytes > marks.hard_bytes

    def ready(self) -> Segment | None:
        """The first segment, if credit allows it now; it stays in the outlet."""
        if self.window is None or not self.queue:
            return None
        head = self.queue[0]
        return head if self.window.allows(len(head)) else None

    def pop(self, sent_bytes: int) -> Segment:
        """Removes the first segment and spends credit for `sent_bytes`; only after `ready` returned it.

        A segment that is sent with fewer destinations is shorter, and its receiver counts the bytes that arrive.
        """
        assert self.window is not None  # noqa: S101  # `ready` has checked it
        segment = self.queue.popleft()
        self.queued_bytes -= len(segment)
        self.window.spend(sent_bytes)
        if self.congested and (taken_bytes := self.taken_bytes) <= self._marks.high_bytes:
            self.full = False
            self.congested = taken_bytes > self._marks.low_bytes
        return segment

    def hold(self, release: HeldRelease) -> None:
        """Holds a release until this outlet is no longer full."""
        self._held.append(release)

    def take_held(self) -> list[HeldRelease]:
        """Removes the held releases if the outlet has room again; empty while it is full."""
        if self.full or not self._held:
            return []
        held, self._held = self._held, []
        return held

    def holds(self, producer: Producer) -> bool:
        """Whether a release of that producer is held."""
        return any(release.producer is producer for release in self._held)

    def forget(self, producer: Producer) -> None:
        """Drops the held releases of a producer that is gone."""
        self._held = [release for release in self._held if release.producer is not producer]

    def is_confirmed(self) -> bool:
        """Whether nothing waits here, and the task's session has given back the credit of everything sent."""
        window = self.window
        return not self.queue and window is not None and window.released_bytes >= window.sent_bytes

    def set_marks(self, marks: Watermarks) -> None:
        """Sets other watermarks; `congested` and `full` follow them with the next segment that comes or leaves."""
        self._marks = marks

    def open(self, window_bytes: int) -> None:
        """Starts a session of the task, with a full window."""
        self.window = CreditWindow(window_bytes)

    def close(self) -> None:
        """Ends the task's session; the queued segments wait for the next one."""
        self.window = None
