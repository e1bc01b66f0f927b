"""The queues between the two threads: no item is lost, and no wake is missed."""

from __future__ import annotations

import os
import select
import sys
import threading

import pytest

from heron.clock import monotonic_s
from heron.instance.queues.data_queue import DataIn, DataOut, ReportSeen, Sleeper
from heron.instance.queues.flow_limits import OutputLimit
from heron.ipc import control_pb2 as pb
from heron.ipc.envelope import Envelope
from heron.ipc.frames.frame import FRAME_HEADER_BYTES
from heron.ipc.frames.frame_limits import FrameLimits
from heron.ipc.wakeup import Wakeup
from heron.kernel.queue_capacity import PERIOD_S, QueueCapacity

LIMITS = FrameLimits(1_000_000)

pytestmark = pytest.mark.leaks_nothing

_LONG_S = 30.0  # a sleeper that is not woken would take so long, and the test fail


def pending(wakeup: Wakeup) -> bool:
    return bool(select.select([wakeup.fd], [], [], 0)[0])


def test_a_wake_before_the_sleep_ends_it_at_once() -> None:
    """The classic lost wake-up comes between the last check and the sleep."""
    sleeper = Sleeper()
    for _ in range(3):
        sleeper.prepare()
        sleeper.wake()
        started_s = monotonic_s()
        sleeper.sleep(_LONG_S)
        assert monotonic_s() - started_s < 5


def test_a_wake_without_a_sleeper_is_forgotten() -> None:
    """Only wakes after `prepare` count, so that an old wake does not end the next sleep."""
    sleeper = Sleeper()
    sleeper.wake()
    sleeper.prepare()
    sleeper.cancel()
    sleeper.wake()
    sleeper.prepare()
    started_s = monotonic_s()
    sleeper.sleep(0.02)
    assert monotonic_s() - started_s >= 0.015


def test_several_threads_may_wake_at_once() -> None:
    """The gateway and the author's own threads may wake at the same moment."""
    sleeper, stop = Sleeper(), threading.Event()
    failures: list[BaseException] = []

    def wake() -> None:
        try:
            while not stop.is_set():
                sleeper.wake()
        except BaseException as error:  # shown by the test
            failures.append(error)

    threads = [threading.Thread(target=wake) for _ in range(2)]
    interval_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    for thread in threads:
        thread.start()
    for _ in range(1000):
        sleeper.prepare()
        sleeper.sleep(0.0002)
    stop.set()
    sys.setswitchinterval(interval_s)
    for thread in threads:
        thread.join()
    assert failures == []


def test_a_late_release_is_not_an_error() -> None:
    """A wake may find the lock free already, if an earlier wake came late; the sleep ends anyway."""
    sleeper = Sleeper()
    sleeper.prepare()
    sleeper._asleep = False  # an earlier wake has come as far as this
    sleeper.prepare()
    sleeper._lock.release()  # and goes on here
    sleeper.wake()
    sleeper.sleep(_LONG_S)


def test_two_threads_pass_everything_in_order() -> None:
    """The task thread sleeps whenever the queue is empty; no wake is missed in thousands of items."""
    wakeup = Wakeup()
    data_in = DataIn(wakeup, QueueCapacity(1000, 1000, 0.1))
    got: list[bytes] = []
    longest_s = 0.0

    def task() -> None:
        nonlocal longest_s
        while len(got) < 5000:
            item = data_in.get()
            if isinstance(item, bytes):
                got.append(item)
                data_in.consume(len(item))
            else:
                started_s = monotonic_s()
                data_in.wait(_LONG_S)
                longest_s = max(longest_s, monotonic_s() - started_s)

    thread = threading.Thread(target=task)
    thread.start()
    for number in range(5000):
        data_in.put(b"%d" % number, 1)
        if number % 7 == 0:
            os.sched_yield()
    thread.join(60)
    assert got == [b"%d" % number for number in range(5000)]
    assert longest_s < 5
    wakeup.close()


def test_the_gateway_is_woken_for_an_empty_queue_or_a_quarter_of_the_window() -> None:
    """A wake for each frame would cost a system call and the interpreter lock each time."""
    wakeup = Wakeup()
    data_in = DataIn(wakeup, QueueCapacity(1000, 1000, 0.1))
    for _ in range(4):
        data_in.put(b"x" * 100, 100)
    told = []
    for _ in range(4):
        wakeup.asleep = True
        data_in.get()
        data_in.consume(100)
        told.append(pending(wakeup))
        wakeup.drain()
    assert told == [False, False, True, True]
    assert (data_in.received_bytes, data_in.consumed_bytes, data_in.queued_bytes()) == (400, 400, 0)
    wakeup.close()


def test_a_command_is_seen_only_at_the_head_of_the_queue() -> None:
    """Commands do not overtake data, and the runner may look at one without taking it."""
    data_in = DataIn(Wakeup(), QueueCapacity(1000, 1000, 0.1))
    command = ReportSeen(1)
    data_in.put(b"frame", 5)
    data_in.put(command)
    assert data_in.peek_command() is None
    assert data_in.get() == b"frame"
    assert data_in.peek_command() is command
    assert data_in.get() is command
    assert data_in.get() is None


def test_data_out_is_bounded_and_wakes_a_thread_that_waits_for_room() -> None:
    """With two threads and a small limit, the producer is never ahead by more than one flush, and never stuck."""
    wakeup = Wakeup()
    data_out = DataOut(wakeup, Sleeper(), QueueCapacity(100, 100, 0.1), LIMITS)
    most = 0
    longest_s = 0.0

    def task() -> None:
        nonlocal most, longest_s
        for _ in range(2000):
            while not data_out.has_room():
                started_s = monotonic_s()
                data_out.wait_for_room(_LONG_S)
                longest_s = max(longest_s, monotonic_s() - started_s)
            data_out.put([b"x" * 30, b"y" * 10])
            most = max(most, data_out.queued_bytes)

    thread = threading.Thread(target=task)
    thread.start()
    sent = 0
    deadline_s = monotonic_s() + 60
    while sent < 2000 and monotonic_s() < deadline_s:
        if data_out.items:
            item = data_out.items.popleft()
            assert not isinstance(item, Envelope)
            data_out.sent(item[1])
            sent += 1
        else:
            os.sched_yield()
    thread.join(60)
    assert sent == 2000
    assert data_out.queued_bytes == 0
    assert most < 100 + 40
    assert longest_s < 5
    wakeup.close()


def test_an_idle_queue_holds_two_batches_of_the_output_limit() -> None:
    """Otherwise a marker behind a full queue would leave a minute later, and the checkpoint would wait for it."""
    wakeup = Wakeup()
    data_out = DataOut(wakeup, Sleeper(), QueueCapacity(64 * 1024, 2**21, 0.1), LIMITS)
    data_out.limit_output(limit := OutputLimit(20_000.0))
    assert data_out.capacity_bytes == 2 * limit.batch_bytes == 4_000
    for period in range(20):
        data_out.adapt(PERIOD_S * period)
    data_out.put([bytes(3_999)])
    assert data_out.has_room()
    data_out.put([b"x"])
    assert not data_out.has_room()
    limit.lift()
    data_out.adapt(PERIOD_S * 30)
    assert data_out.capacity_bytes == 2**21
    assert data_out.has_room()
    wakeup.close()


def test_control_messages_keep_their_place_and_take_no_room() -> None:
    """The report of an end must follow the data, whatever the limit of the queue."""
    data_out = DataOut(Wakeup(), Sleeper(), QueueCapacity(10, 10, 0.1), LIMITS)
    data_out.put([b"x" * 20])
    data_out.put_control(Envelope(stop=pb.Stop()))
    assert not data_out.has_room()
    assert [type(item) for item in data_out.items] == [tuple, Envelope]
    assert data_out.queued_bytes == 20


def test_a_flush_above_the_limit_of_a_frame_leaves_in_several() -> None:
    """Each has its own credit. Acks are divided, too."""
    data_out = DataOut(Wakeup(), Sleeper(), QueueCapacity(10, 10, 0.1), FrameLimits(FRAME_HEADER_BYTES + 100))
    data_out.put([b"a" * 60, b"b" * 60, b"c" * 40])
    assert list(data_out.items) == [([b"a" * 60], 60), ([b"b" * 60, b"c" * 40], 100)]
    assert data_out.queued_bytes == 160
    data_out.put_acks([b"a" * 60, b"b" * 60])
    assert list(data_out.acks) == [[b"a" * 60], [b"b" * 60]]
