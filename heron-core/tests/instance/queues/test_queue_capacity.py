"""The capacity of a queue: within its bounds, close to the pace, and large enough that no batch gets stuck."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heron.instance.queues.data_queue import DataIn, DataOut, Sleeper
from heron.ipc.frames.frame_limits import FrameLimits
from heron.ipc.link import CreditWindow
from heron.ipc.wakeup import Wakeup
from heron.kernel.queue_capacity import PERIOD_S, QueueCapacity

LIMITS = FrameLimits(1_000_000)

LEAST, MOST, TARGET_S = 1000, 100_000, 0.1

PERIODS = st.lists(
    st.tuples(
        st.integers(0, 10**9),
        st.floats(1e-6, 1e6),
        st.booleans(),
        st.integers(0, 10**8),
    )
)


@given(st.integers(1, 10**7), st.integers(1, 10**7), st.floats(0.001, 100), PERIODS)
def test_it_is_always_within_its_bounds_and_holds_the_largest_batch(
    least: int, most: int, target_s: float, periods: list[tuple[int, float, bool, int]]
) -> None:
    """This holds for all measurements, even if the least is configured above the most."""
    capacity = QueueCapacity(least, most, target_s)
    for left_bytes, elapsed_s, ran_dry, largest_bytes in periods:
        capacity.adapt(left_bytes, elapsed_s, ran_dry=ran_dry, largest_bytes=largest_bytes)
        assert min(least, most) <= capacity.current_bytes <= most
        assert capacity.current_bytes >= min(most, 2 * largest_bytes)


@given(st.integers(LEAST, MOST), st.integers(0, 10**7), st.floats(0.1, 20))
def test_at_a_steady_pace_it_converges_to_pace_times_target(start: int, pace: int, periods: float) -> None:
    """Each period covers half of the way, for long and short periods: 20 periods are enough from any start."""
    capacity = at(start)
    for _ in range(int(20 / periods) + 1):
        elapsed_s = periods * PERIOD_S
        capacity.adapt(int(pace * elapsed_s), elapsed_s, ran_dry=False, largest_bytes=0)
    assert capacity.current_bytes == pytest.approx(min(MOST, max(LEAST, pace * TARGET_S)), rel=0.01, abs=5)


def at(capacity_bytes: int) -> QueueCapacity:
    """A capacity with this value."""
    capacity = QueueCapacity(LEAST, MOST, TARGET_S)
    capacity.adapt(0, PERIOD_S, ran_dry=True, largest_bytes=0)
    for _ in range(60):
        capacity.adapt(int(capacity_bytes / TARGET_S * PERIOD_S), PERIOD_S, ran_dry=False, largest_bytes=0)
    return capacity


def test_a_queue_that_runs_dry_has_its_full_capacity_within_a_second() -> None:
    """A bolt that has recovered must be at full speed within two seconds."""
    capacity, periods = QueueCapacity(LEAST, MOST, TARGET_S), 0
    while capacity.current_bytes < MOST:
        capacity.adapt(10, PERIOD_S, ran_dry=True, largest_bytes=0)
        periods += 1
    assert periods * PERIOD_S < 1
    capacity.adapt(10, 3600.0, ran_dry=True, largest_bytes=0)
    assert capacity.current_bytes == MOST


def test_a_stalled_task_has_the_least_capacity_after_a_second() -> None:
    """The pace before the stall does not matter."""
    capacity = at(MOST)
    for _ in range(10):
        capacity.adapt(0, PERIOD_S, ran_dry=False, largest_bytes=0)
    assert capacity.current_bytes == LEAST


def test_a_giant_batch_is_forgotten_after_small_ones() -> None:
    """A batch of 16 MiB must not keep the queue of a slow task large forever; periods without batches do not count."""
    capacity = at(LEAST)
    capacity.adapt(0, PERIOD_S, ran_dry=False, largest_bytes=40_000)
    assert capacity.current_bytes == 80_000
    for _ in range(5):
        capacity.adapt(0, PERIOD_S, ran_dry=False, largest_bytes=0)
    assert capacity.current_bytes == 80_000
    for _ in range(12):
        capacity.adapt(0, PERIOD_S, ran_dry=False, largest_bytes=100)
    assert capacity.current_bytes == LEAST


@dataclass
class Link:
    """A stream manager with batches for a task, the task's queue, and a clock; credit arrives at once."""

    capacity: QueueCapacity
    batches: deque[int]
    window: CreditWindow = field(init=False)
    data_in: DataIn = field(init=False)
    queue: deque[int] = field(default_factory=deque)
    now_s: float = 0.0
    most_waiting: int = 0

    def __post_init__(self) -> None:
        self.window = CreditWindow(self.capacity.most_bytes)
        self.wakeup = Wakeup()
        self.data_in = DataIn(self.wakeup, self.capacity)
        self.data_in.adapt(self.now_s)

    def send(self) -> None:
        """Sends the batches that credit allows."""
        while self.batches and self.window.allows(self.batches[0]):
            size = self.batches.popleft()
            self.window.spend(size)
            self.data_in.put(b"", size)
            self.queue.append(size)
        self.most_waiting = max(self.most_waiting, self.data_in.queued_bytes())

    def work(self, pace: float) -> None:
        """The task processes one batch; the gateway has a round if it is woken."""
        size = self.queue.popleft()
        self.now_s += size / pace
        self.wakeup.asleep = True
        self.data_in.consume(size, size)
        if not self.wakeup.asleep:
            self.wakeup.drain()
            self.round()

    def round(self) -> None:
        """The end of a round of the gateway."""
        self.data_in.adapt(self.now_s)
        self.window.release(self.data_in.released_bytes())


@given(
    st.integers(1, 5000),
    st.integers(1, 20_000),
    st.lists(st.tuples(st.integers(1, 60_000), st.floats(1.0, 1e8)), max_size=60),
)
def test_no_mix_of_batches_and_paces_blocks_the_sender(least: int, most: int, work: list[tuple[int, float]]) -> None:
    """While the task works, batches larger than capacity or window arrive too, and the window is never exceeded."""
    link = Link(QueueCapacity(least, most, TARGET_S), deque(size for size, _ in work))
    for _, pace in work:
        link.send()
        assert link.queue, "everything is consumed, and yet the next batch may not come"
        assert link.data_in.queued_bytes() <= most or len(link.queue) == 1
        link.work(pace)
    assert not link.batches
    assert link.window.released_bytes == link.window.sent_bytes
    link.wakeup.close()


def test_a_slow_task_holds_its_work_of_the_target_time() -> None:
    """After the first window, the queue holds 0.1 s of work, and not a whole window, which is 10 s of work."""
    pace = 10 * LEAST / TARGET_S
    link = Link(QueueCapacity(LEAST, MOST * 10, TARGET_S), deque([200] * 20_000))
    for _ in range(5000):
        link.send()
        link.work(pace)
    link.most_waiting = 0
    for _ in range(5000):
        link.send()
        link.work(pace)
    assert 0 < link.most_waiting <= 1.1 * pace * TARGET_S
    link.wakeup.close()


def test_a_task_that_recovers_is_never_without_work() -> None:
    """The window opens, and the sender always has more data than it may send."""
    link = Link(QueueCapacity(LEAST, MOST * 10, TARGET_S), deque([200] * 100_000))
    for pace, steps in ((10 * LEAST, 6000), (1e7, 40_000)):
        for _ in range(steps):
            link.send()
            assert link.queue
            link.work(pace)
    assert link.capacity.current_bytes == pytest.approx(1e7 * TARGET_S, rel=0.05)
    link.wakeup.close()


def test_data_out_has_room_for_the_output_of_the_target_time() -> None:
    """The task thread is woken when the capacity grows, even if no data has left."""
    wakeup = Wakeup()
    data_out = DataOut(wakeup, Sleeper(), QueueCapacity(LEAST, MOST, TARGET_S), LIMITS)
    data_out.adapt(0.0)
    for period in range(1, 30):
        while data_out.has_room():
            data_out.put([b"x" * 400])
        for _ in range(10):  # 4,000 bytes a period
            data_out.items.popleft()
            data_out.sent(400)
            while data_out.has_room():
                data_out.put([b"x" * 400])
        data_out.delayed = True
        data_out.adapt(period * PERIOD_S * 1.0001)
    assert data_out.capacity.current_bytes == pytest.approx(4000 * TARGET_S / PERIOD_S, rel=0.05)
    assert data_out.queued_bytes <= 4000 + 400

    while data_out.has_room():
        data_out.put([b"x" * 400])
    data_out.sleeper.prepare()
    data_out.adapt(40 * PERIOD_S)  # nothing was delayed
    assert data_out.has_room()
    assert not data_out.sleeper._asleep
    wakeup.close()
