"""Which received segments a bolt processes now, and which it keeps: the alignment of checkpoints. Pure.

A channel is the data of one task upstream. A channel that has sent the marker of a checkpoint is closed until all
channels have: its segments are parked. Parked segments are consumed, so that they hold no credit; the markers of the
other channels may be behind data that needs this credit. A newer checkpoint takes the place of an abandoned one.

Every segment names the version of the plan under which it was sent. Older segments than the last restore are dropped.
Newer segments than the task's own plan are parked until it has this plan.
"""

from __future__ import annotations

import enum
from collections import deque

__all__ = ["ChannelAlignment", "Verdict"]


class Verdict(enum.Enum):
    """What happens to a segment."""

    PROCESS = enum.auto()
    PARK = enum.auto()
    DROP = enum.auto()


class ChannelAlignment:
    """The open and closed channels of one bolt task.

    Call `verdict` for each segment in the order of arrival, and `park` for those that are parked. `take_ready` gives
    parked segments back, in their order and before any later segment is read; each of them gets a new verdict.
    """

    __slots__ = ("_closed_at_s", "_limit_bytes", "_marked", "_parked", "_ready", "_upstream", "number", "parked_bytes")

    def __init__(self, limit_bytes: int) -> None:
        """`limit_bytes` is how much may be parked for one checkpoint."""
        self._upstream: frozenset[int] = frozenset()
        self._limit_bytes = limit_bytes
        self._marked: dict[int, int] = {}
        self._parked: deque[bytes] = deque()
        self._ready: deque[bytes] = deque()
        self._closed_at_s = 0.0
        self.number = 0
        """The newest checkpoint that was aligned or given up."""
        self.parked_bytes = 0

    def restart(self, upstream: frozenset[int], number: int) -> None:
        """The task is restored: all channels are open, and checkpoints up to `number` are over."""
        self._upstream = upstream
        self._marked = {}
        self.number = number
        self.open()

    def set_upstream(self, upstream: frozenset[int]) -> None:
        """Replaces the upstream tasks by those of a new plan; segments that waited for the plan are ready."""
        self._upstream = upstream
        self.open()

    def verdict(self, source: int, sent_under: int, since: int, version: int) -> Verdict:
        """What happens to a segment of the task `source` that was sent under the plan version `sent_under`.

        `since` is the version of the last restore, `version` that of the task's own plan.
        """
        if sent_under < since:
            return Verdict.DROP
        if sent_under > version or self._marked.get(source, 0) > self.number:
            return Verdict.PARK
        return Verdict.PROCESS

    def park(self, segment: bytes) -> bool:
        """Keeps a segment; returns whether the limit is exceeded, so that the checkpoint has to be given up."""
        self._parked.append(segment)
        self.parked_bytes += len(segment)
        return self.parked_bytes > self._limit_bytes and self.under_way() > 0

    def mark(self, source: int, number: int, now_s: float) -> None:
        """A marker of a checkpoint has arrived from a task upstream."""
        under_way = self.under_way()
        if number <= self.number or number < under_way:  # late: that checkpoint is over, or another took its place
            return
        if not under_way:
            self._closed_at_s = now_s
        superseded = any(self.number < each < number for each in self._marked.values())
        self._marked[source] = number
        if superseded:  # what was parked for the abandoned checkpoint is read, up to the next marker of its channel
            self._marked = {task: each for task, each in self._marked.items() if each >= number}
            self.open()

    def under_way(self) -> int:
        """The checkpoint that is being aligned; 0 for none."""
        newest = max(self._marked.values(), default=0)
        return newest if newest > self.number else 0

    def aligned(self) -> int:
        """The checkpoint whose markers have all arrived; 0 for none."""
        number = self.under_way()
        return number if number and all(self._marked.get(task, 0) >= number for task in self._upstream) else 0

    def finish(self, number: int, now_s: float) -> float:
        """The checkpoint is saved or given up: all channels are open; returns for how long some were closed, in s."""
        self.number = number
        self.open()
        return now_s - self._closed_at_s

    def open(self) -> None:
        """Everything that is parked gets a new verdict."""
        self._parked.extend(self._ready)
        self._ready, self._parked = self._parked, deque()

    def take_ready(self) -> bytes | None:
        """The next parked segment that gets a new verdict."""
        if not self._ready:
            return None
        segment = self._ready.popleft()
        self.parked_bytes -= len(segment)
        return segment

    def waits(self) -> bool:
        """Whether segments are ready: then everything that arrives goes behind them, by `queue`."""
        return bool(self._ready)

    def queue(self, segment: bytes) -> None:
        """Adds a segment that has just arrived behind those that are ready."""
        self._ready.append(segment)
        self.parked_bytes += len(segment)
