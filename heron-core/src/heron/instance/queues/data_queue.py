"""The queues between the gateway thread and the task thread.

Each queue is a deque, whose `append` and `popleft` are atomic under the interpreter lock, with a way to sleep: the task
thread sleeps on a raw lock, the gateway in its reactor on an eventfd. A thread pays for waking the other one only while
that thread sleeps.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from heron.clock import monotonic_s
from heron.instance.queues.flow_limits import OutputLimit
from heron.ipc.control_pb2 import Envelope
from heron.ipc.frames.frame_limits import FrameLimits, divided
from heron.ipc.frames.tracking import Cause, RootOutcome
from heron.ipc.wakeup import Wakeup
from heron.kernel.queue_capacity import PERIOD_S, QueueCapacity
from heron.planner.physical_plan import PhysicalPlan
from heron.spi.tracing import Stamp

__all__ = [
    "Command",
    "DataIn",
    "DataOut",
    "FramesRefused",
    "LettersAsked",
    "PlanReceived",
    "ReportSeen",
    "RootsSettled",
    "SessionOpened",
    "Sleeper",
    "TracedFrameArrived",
]


@dataclass(frozen=True, slots=True)
class PlanReceived:
    """A physical plan arrived."""

    plan: PhysicalPlan


@dataclass(frozen=True, slots=True)
class SessionOpened:
    """A stream manager has registered this instance; `ended`: the task ended in an earlier incarnation."""

    ended: bool


@dataclass(frozen=True, slots=True)
class ReportSeen:
    """The topology manager has received a report of this phase."""

    phase: int


@dataclass(frozen=True, slots=True)
class RootsSettled:
    """Outcomes of roots of this task with the counters of the roots, in the order of completion.

    `causes` has the counters of roots that failed, and why; see `heron.instance.replay.failure_cause`.
    """

    outcomes: tuple[tuple[RootOutcome, range | list[int]], ...]
    causes: tuple[tuple[list[int], list[Cause]], ...] = ()


@dataclass(frozen=True, slots=True)
class LettersAsked:
    """A command wants to drop stored dead letters of this task, or to have them emitted again."""

    request_id: int
    ids: frozenset[str]
    drop: bool


@dataclass(frozen=True, slots=True)
class TracedFrameArrived:
    """The next frame has traced rows; the time of its arrival."""

    at: Stamp


@dataclass(frozen=True, slots=True)
class FramesRefused:
    """The stream manager has refused a frame of this task and ended the session; `rows` tuples are lost."""

    reason: str
    rows: int


Command = FramesRefused | LettersAsked | PlanReceived | SessionOpened | ReportSeen | RootsSettled | TracedFrameArrived


class Sleeper:
    """Lets one thread sleep until another thread wakes it.

    The waking thread first puts something where the sleeper looks between `prepare` and `sleep`, then calls `wake`. For
    changes that the sleeper does not look at, it calls `nudge`, which is remembered.
    """

    __slots__ = ("_asleep", "_lock", "_nudged")

    def __init__(self, lock: threading.Lock | None = None) -> None:
        self._lock = lock or threading.Lock()
        self._lock.acquire()
        self._asleep = False
        self._nudged = False

    def prepare(self) -> None:
        """Sleeper: called before it looks for work for the last time."""
        self._lock.acquire(blocking=False)  # takes back a wake that came too late for the previous sleep
        self._asleep = True

    def sleep(self, timeout_s: float) -> float:
        """Sleeper: sleeps until `wake` or for at most `timeout_s`; called after `prepare`; returns the seconds."""
        slept_s = 0.0
        if timeout_s > 0:
            start_s = monotonic_s()
            self._lock.acquire(timeout=timeout_s)
            slept_s = monotonic_s() - start_s
        self._asleep = False
        return slept_s

    def cancel(self) -> None:
        """Sleeper: has found work after `prepare` and does not sleep."""
        self._asleep = False

    def wake(self) -> None:
        """Other thread: called after it has put work where the sleeper looks."""
        if self._asleep:
            self._asleep = False
            try:
                self._lock.release()
            except RuntimeError:  # a late wake has released it already, and the sleep ends anyway
                return

    def nudge(self) -> None:
        """Other thread: ends this sleep, or else the next one before it begins."""
        self._nudged = True  # before the wake: a sleeper that misses the wake sees the nudge
        self.wake()

    def take_nudge(self) -> bool:
        """Sleeper: whether there was a nudge since the last call; called after `prepare`."""
        nudged, self._nudged = self._nudged, False
        return nudged


class DataIn:
    """Frames and commands for the task thread, bounded by the credit that the gateway grants.

    The window of the link is the largest capacity. While the capacity is smaller, that much of the consumed bytes is
    not released yet. When the queue is empty everything is released, so that a batch of any size can arrive.
    """

    __slots__ = (
        "_adapted_s",
        "_consumed_then",
        "_items",
        "_largest_bytes",
        "_ran_dry",
        "_wakeup",
        "capacity",
        "consumed_bytes",
        "received_bytes",
        "reported_bytes",
        "sleeper",
    )

    def __init__(self, wakeup: Wakeup, capacity: QueueCapacity, sleeper: Sleeper | None = None) -> None:
        self._items: deque[bytes | Command] = deque()
        self._wakeup = wakeup
        self.capacity = capacity
        self._adapted_s: float | None = None
        self._consumed_then = 0
        self._largest_bytes = 0
        self._ran_dry = False
        self.sleeper = sleeper or Sleeper()
        self.received_bytes = 0
        self.consumed_bytes = 0
        self.reported_bytes = 0

    def put(self, item: bytes | Command, size_bytes: int = 0) -> None:
        """Gateway: appends a frame or command."""
        self.received_bytes += size_bytes
        self._items.append(item)
        self.sleeper.wake()

    def get(self) -> bytes | Command | None:
        """Task thread: the next item, or None."""
        return self._items.popleft() if self._items else None

    def peek_command(self) -> Command | None:
        """Task thread: the next item if it is a command; it stays in the queue."""
        item = self._items[0] if self._items else None
        return None if isinstance(item, bytes) else item

    def wait(self, timeout_s: float) -> float:
        """Task thread: sleeps until there is an item or another thread wakes it; returns the seconds that it slept."""
        self.sleeper.prepare()
        if self._items or self.sleeper.take_nudge():
            self.sleeper.cancel()
            return 0.0
        self._ran_dry = True
        return self.sleeper.sleep(timeout_s)

    def consume(self, size_bytes: int, largest_bytes: int = 0) -> None:
        """Task thread: counts processed bytes, and wakes the gateway when they are worth a credit message.

        `largest_bytes` is the largest batch among them, which the stream manager cannot divide.
        """
        self._largest_bytes = max(self._largest_bytes, largest_bytes)
        consumed_bytes = self.consumed_bytes = self.consumed_bytes + size_bytes
        unreported_bytes = consumed_bytes - self.reported_bytes
        if consumed_bytes == self.received_bytes or unreported_bytes >= self.capacity.current_bytes // 4:
            self._wakeup.wake()

    def adapt(self, now_s: float) -> None:
        """Gateway: sets the capacity when a period is over."""
        elapsed_s = 0.0 if self._adapted_s is None else now_s - self._adapted_s
        if 0 < elapsed_s < PERIOD_S:
            return
        consumed_bytes = self.consumed_bytes
        if elapsed_s:
            ran_dry = self._ran_dry or consumed_bytes == self.received_bytes
            left_bytes, largest_bytes = consumed_bytes - self._consumed_then, self._largest_bytes
            self.capacity.adapt(left_bytes, elapsed_s, ran_dry=ran_dry, largest_bytes=largest_bytes)
        self._adapted_s, self._consumed_then = now_s, consumed_bytes
        self._largest_bytes, self._ran_dry = 0, False

    def released_bytes(self) -> int:
        """Gateway: how many of all received bytes it may release now; may be less than in the last call."""
        consumed_bytes = self.reported_bytes = self.consumed_bytes
        if consumed_bytes == self.received_bytes:
            return consumed_bytes
        return consumed_bytes - (self.capacity.most_bytes - self.capacity.current_bytes)

    def queued_bytes(self) -> int:
        """The bytes that wait now, including the batch in work."""
        return self.received_bytes - self.consumed_bytes


class DataOut:
    """Segments and control messages for the stream manager, in order; the segments of an item fit into one frame."""

    __slots__ = (
        "_adapted_s",
        "_frame_max_bytes",
        "_largest_bytes",
        "_limit_bytes",
        "_linger_over",
        "_put_bytes",
        "_sent_bytes",
        "_sent_then",
        "_wakeup",
        "acks",
        "capacity",
        "delayed",
        "items",
        "limit",
        "sleeper",
    )

    def __init__(self, wakeup: Wakeup, sleeper: Sleeper, capacity: QueueCapacity, limits: FrameLimits) -> None:
        self._wakeup = wakeup
        self._frame_max_bytes = limits.data_bytes
        self.capacity = capacity
        self.limit: OutputLimit | None = None
        self.delayed = False  # gateway: whether data has waited since the capacity was set
        self._limit_bytes = capacity.current_bytes
        self._adapted_s: float | None = None
        self._largest_bytes = 0
        self._sent_then = 0
        self.sleeper = sleeper
        self.items: deque[tuple[Sequence[bytes], int] | Envelope] = deque()
        self.acks: deque[Sequence[bytes]] = deque()
        self._linger_over: Callable[[], None] | None = None
        self._put_bytes = 0  # written by the thread that has the emit lock
        self._sent_bytes = 0  # written by the gateway alone

    @property
    def queued_bytes(self) -> int:
        """The bytes that wait now."""
        return self._put_bytes - self._sent_bytes

    def put(self, segments: Sequence[bytes]) -> None:
        """Task thread: appends the segments of one flush: one frame, unless they exceed the limit of a frame."""
        for part, size_bytes in divided(segments, self._frame_max_bytes):
            self._largest_bytes = max(self._largest_bytes, size_bytes)
            self._put_bytes += size_bytes
            self.items.append((part, size_bytes))
        self._wakeup.wake()

    def on_linger_over(self, action: Callable[[], None]) -> None:
        """Task thread: has the gateway call `action` when the linger after a flush is over."""
        self._linger_over = action

    def end_linger(self) -> None:
        """Gateway: the linger after a flush is over."""
        if self._linger_over is not None:
            self._linger_over()

    def put_acks(self, segments: Sequence[bytes]) -> None:
        """Task thread: appends acks and fails, which data does not block."""
        self.acks.extend(part for part, _ in divided(segments, self._frame_max_bytes))
        self._wakeup.wake()

    def put_control(self, envelope: Envelope) -> None:
        """Task thread: appends a control message; it does not overtake data."""
        self.items.append(envelope)
        self._wakeup.wake()

    def has_room(self) -> bool:
        """Task thread: whether more may be emitted now."""
        return self._put_bytes - self._sent_bytes < self._limit_bytes

    def wait_for_room(self, timeout_s: float) -> float:
        """Task thread: sleeps until there may be room; returns the seconds that it slept."""
        self.sleeper.prepare()
        if self.has_room():
            self.sleeper.cancel()
            return 0.0
        return self.sleeper.sleep(timeout_s)

    def sent(self, size_bytes: int) -> None:
        """Gateway: counts bytes that have left."""
        before = self._sent_bytes
        self._sent_bytes = before + size_bytes
        if self._put_bytes - before >= self._limit_bytes:  # read after the change, so that no waiter is missed
            self.sleeper.wake()

    def limit_output(self, limit: OutputLimit) -> None:
        """Task thread, before its first emit: sets the output limit."""
        self.limit = limit
        self._limit_bytes = self.capacity_bytes

    @property
    def capacity_bytes(self) -> int:
        """The capacity now. With an output limit, two batches are enough: a marker waits for the data before it."""
        limit, adapted_bytes = self.limit, self.capacity.current_bytes
        return adapted_bytes if limit is None else min(adapted_bytes, 2 * limit.batch_bytes)

    def adapt(self, now_s: float) -> None:
        """Gateway: sets the capacity when a period is over."""
        elapsed_s = 0.0 if self._adapted_s is None else now_s - self._adapted_s
        if 0 < elapsed_s < PERIOD_S:
            return
        if elapsed_s:
            left_bytes, largest_bytes = self._sent_bytes - self._sent_then, self._largest_bytes
            self.capacity.adapt(left_bytes, elapsed_s, ran_dry=not self.delayed, largest_bytes=largest_bytes)
        self._adapted_s, self._sent_then = now_s, self._sent_bytes
        self._largest_bytes, self.delayed = 0, False
        before_bytes, self._limit_bytes = self._limit_bytes, self.capacity_bytes
        if self._limit_bytes > before_bytes:
            self.sleeper.wake()
