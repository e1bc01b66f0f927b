"""The queues between the gateway thread and the task thread.

Each is a deque, whose `append` and `popleft` are atomic under the interpreter lock, with a way to sleep: the task
thread sleeps on a raw lock, the gateway in its reactor on an eventfd. A waker pays for that only while the other one
sleeps.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from heron.instance.output_limit import OutputLimit
from heron.instance.queue_capacity import PERIOD_S, QueueCapacity
from heron.ipc.control_pb2 import Envelope
from heron.ipc.tracking import RootOutcome
from heron.ipc.wakeup import Wakeup
from heron.planner.physical_plan import PhysicalPlan

__all__ = ["Command", "DataIn", "DataOut", "PlanReceived", "ReportSeen", "RootsSettled", "SessionOpened", "Sleeper"]


@dataclass(frozen=True, slots=True)
class PlanReceived:
    """A physical plan came."""

    plan: PhysicalPlan


@dataclass(frozen=True, slots=True)
class SessionOpened:
    """A stream manager knows this instance now; `ended` says that this task ended in an earlier incarnation."""

    ended: bool


@dataclass(frozen=True, slots=True)
class ReportSeen:
    """The topology manager has taken a report of this phase."""

    phase: int


@dataclass(frozen=True, slots=True)
class RootsSettled:
    """What became of roots of this task, and their counters, in the order of completion."""

    news: tuple[tuple[RootOutcome, range | list[int]], ...]


Command = PlanReceived | SessionOpened | ReportSeen | RootsSettled


class Sleeper:
    """Lets one thread sleep until another wakes it.

    Who wakes it has put something where the sleeper looks, between `prepare` and `sleep`; what it does not look at is
    told by `nudge`, which is remembered.
    """

    __slots__ = ("_asleep", "_lock", "_nudged")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()
        self._asleep = False
        self._nudged = False

    def prepare(self) -> None:
        """Called by the sleeper before it looks for the last time whether there is something to do."""
        self._lock.acquire(blocking=False)  # a wake that came too late for the sleep before
        self._asleep = True

    def sleep(self, timeout_s: float) -> None:
        """Sleeps until `wake`, at most so long; after `prepare`."""
        if timeout_s > 0:
            self._lock.acquire(timeout=timeout_s)
        self._asleep = False

    def cancel(self) -> None:
        """There is something to do after all."""
        self._asleep = False

    def wake(self) -> None:
        """Called by the other thread after it has put something there."""
        if self._asleep:
            self._asleep = False
            try:
                self._lock.release()
            except RuntimeError:  # a wake that came late has released it already: the sleep ends all the same
                return

    def nudge(self) -> None:
        """Ends this sleep, or else the next one before it begins."""
        self._nudged = True  # before the wake: a sleeper that misses the one sees the other
        self.wake()

    def take_nudge(self) -> bool:
        """Whether there was a nudge since the last time; after `prepare`."""
        nudged, self._nudged = self._nudged, False
        return nudged


class DataIn:
    """Frames and commands on their way to the task thread; bounded by the credit that the gateway grants.

    The most that its capacity can be is the window of the link; where it is less, so much of what was consumed is not
    released yet. When nothing waits here all of it is, so that a batch of any size can come.
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

    def __init__(self, wakeup: Wakeup, capacity: QueueCapacity) -> None:
        self._items: deque[bytes | Command] = deque()
        self._wakeup = wakeup
        self.capacity = capacity
        self._adapted_s: float | None = None
        self._consumed_then = 0
        self._largest_bytes = 0
        self._ran_dry = False
        self.sleeper = Sleeper()
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
        """Task thread: the next item, if it is a command; it stays."""
        item = self._items[0] if self._items else None
        return None if isinstance(item, bytes) else item

    def wait(self, timeout_s: float) -> None:
        """Task thread: sleeps until there is an item or somebody wakes it."""
        self.sleeper.prepare()
        if self._items or self.sleeper.take_nudge():
            self.sleeper.cancel()
        else:
            self._ran_dry = True
            self.sleeper.sleep(timeout_s)

    def consume(self, size_bytes: int, largest_bytes: int = 0) -> None:
        """Task thread: is done with so many bytes; tells the gateway when that is worth a credit message.

        `largest_bytes` is the largest batch among them: what the stream manager cannot divide.
        """
        self._largest_bytes = max(self._largest_bytes, largest_bytes)
        consumed_bytes = self.consumed_bytes = self.consumed_bytes + size_bytes
        unreported_bytes = consumed_bytes - self.reported_bytes
        if consumed_bytes == self.received_bytes or unreported_bytes >= self.capacity.current_bytes // 4:
            self._wakeup.wake()

    def adapt(self, now_s: float) -> None:
        """Gateway: sets the capacity, when a period is over."""
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
        """Gateway: how much of all that was received it may release now, in all; may be less than before."""
        consumed_bytes = self.reported_bytes = self.consumed_bytes
        if consumed_bytes == self.received_bytes:
            return consumed_bytes
        return consumed_bytes - (self.capacity.most_bytes - self.capacity.current_bytes)

    def queued_bytes(self) -> int:
        """What waits now, the batch in work included."""
        return self.received_bytes - self.consumed_bytes


class DataOut:
    """Segments and control messages on their way to the stream manager, in order."""

    __slots__ = (
        "_adapted_s",
        "_flush",
        "_largest_bytes",
        "_limit_bytes",
        "_limits",
        "_put_bytes",
        "_sent_bytes",
        "_sent_then",
        "_wakeup",
        "acks",
        "capacity",
        "held",
        "items",
        "limit",
        "sleeper",
    )

    def __init__(self, wakeup: Wakeup, sleeper: Sleeper, capacity: QueueCapacity) -> None:
        self._wakeup = wakeup
        self.capacity = capacity
        self.limit: OutputLimit | None = None
        self.held = False  # gateway: whether data had to wait since the capacity was set
        self._limit_bytes = capacity.current_bytes
        self._adapted_s: float | None = None
        self._largest_bytes = 0
        self._sent_then = 0
        self.sleeper = sleeper
        self.items: deque[tuple[Sequence[bytes], int] | Envelope] = deque()
        self.acks: deque[Sequence[bytes]] = deque()
        self._limits: Sequence[list[int]] = ()
        self._flush: Callable[[], None] | None = None
        self._put_bytes = 0  # written by who has the baton
        self._sent_bytes = 0  # written by the gateway alone

    @property
    def queued_bytes(self) -> int:
        """What waits now."""
        return self._put_bytes - self._sent_bytes

    def put(self, segments: Sequence[bytes]) -> None:
        """Task thread: appends the segments of one flush."""
        size_bytes = sum(map(len, segments))
        self._largest_bytes = max(self._largest_bytes, size_bytes)
        self._put_bytes += size_bytes
        self.items.append((segments, size_bytes))
        self._wakeup.wake()

    def hurry(self, limits: Sequence[list[int]], flush: Callable[[], None]) -> None:
        """Task thread: has the gateway do what `end_linger` says."""
        self._limits = limits
        self._flush = flush

    def end_linger(self) -> None:
        """Gateway: the linger since a flush is over. What is emitted from now on goes out at once, until the next.

        What was emitted since goes out now, also while the author's code blocks.
        """
        for limit in self._limits:
            limit[0] = 0
        if self._flush is not None:
            self._flush()

    def put_acks(self, segments: Sequence[bytes]) -> None:
        """Task thread: appends acks and fails, which data does not hold up."""
        self.acks.append(segments)
        self._wakeup.wake()

    def put_control(self, envelope: Envelope) -> None:
        """Task thread: appends a control message; it does not overtake data."""
        self.items.append(envelope)
        self._wakeup.wake()

    def has_room(self) -> bool:
        """Task thread: whether more may be emitted now."""
        return self._put_bytes - self._sent_bytes < self._limit_bytes

    def wait_for_room(self, timeout_s: float) -> None:
        """Task thread: sleeps until there may be room."""
        self.sleeper.prepare()
        if self.has_room():
            self.sleeper.cancel()
        else:
            self.sleeper.sleep(timeout_s)

    def sent(self, size_bytes: int) -> None:
        """Gateway: so many bytes have left."""
        before = self._sent_bytes
        self._sent_bytes = before + size_bytes
        if self._put_bytes - before >= self._limit_bytes:  # looked at after the change: no waiter is missed
            self.sleeper.wake()

    def throttle(self, limit: OutputLimit) -> None:
        """Task thread, before it emits: no more than this leaves; and so no more than two batches need wait."""
        self.capacity.least_bytes = min(self.capacity.least_bytes, 2 * limit.batch_bytes)
        self.limit = limit

    def adapt(self, now_s: float) -> None:
        """Gateway: sets the capacity, when a period is over."""
        elapsed_s = 0.0 if self._adapted_s is None else now_s - self._adapted_s
        if 0 < elapsed_s < PERIOD_S:
            return
        if elapsed_s:
            left_bytes, largest_bytes = self._sent_bytes - self._sent_then, self._largest_bytes
            self.capacity.adapt(left_bytes, elapsed_s, ran_dry=not self.held, largest_bytes=largest_bytes)
        self._adapted_s, self._sent_then = now_s, self._sent_bytes
        self._largest_bytes, self.held = 0, False
        before_bytes, self._limit_bytes = self._limit_bytes, self.capacity.current_bytes
        if self._limit_bytes > before_bytes:
            self.sleeper.wake()
