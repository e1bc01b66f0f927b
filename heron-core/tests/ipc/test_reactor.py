"""The event loop: timers, wake-ups from other threads, disconnections."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from heron.ipc.reactor import BusyPeriods, Reactor
from heron.ipc.socket import SocketContext
from heron.ipc.wakeup import Wakeup
from heron_testing.fake_clock import FakeClock


@pytest.fixture
def sockets() -> Iterator[SocketContext]:
    context = SocketContext(max_frame_bytes=-1)
    yield context
    context.close()


def test_timers_fire_in_order_at_their_time(fake_clock: FakeClock) -> None:
    """A single timer fires once, a periodic one repeatedly, a cancelled one never."""
    reactor, fired = Reactor(fake_clock), list[str]()
    reactor.after(2.0, lambda: fired.append("late"))
    reactor.after(1.0, lambda: fired.append("early"))
    every = reactor.every(1.5, lambda: fired.append("again"))
    reactor.after(1.0, lambda: fired.append("never")).cancel()
    for _ in range(4):
        reactor.run_once(0.0)
        fake_clock.advance(1.0)
    assert fired == ["early", "again", "late"]
    reactor.run_once(0.0)
    assert fired == ["early", "again", "late", "again"]
    every.cancel()
    fake_clock.advance(10.0)
    reactor.run_once(0.0)
    assert fired == ["early", "again", "late", "again"]


def test_periods_end_when_nothing_happens(fake_clock: FakeClock) -> None:
    """Two of them follow the last event, and more while something is left; each knows when it should have ended."""
    reactor, ends, is_done = Reactor(fake_clock), list[float](), True
    periods = BusyPeriods(reactor, (lambda: ends.append(periods.due_s),), lambda: is_done)
    reactor.at_round_end(periods.begin_if_due)

    def pass_time(seconds: float) -> int:
        before = len(ends)
        for _ in range(round(seconds / 0.05)):
            reactor.run_once(0.0)
            fake_clock.advance(0.05)
        return len(ends) - before

    begun_s = fake_clock.monotonic_s()
    assert pass_time(5.0) == 2
    assert ends[0] == pytest.approx(begun_s + 0.1)
    periods.note()
    assert pass_time(5.0) == 2
    is_done = False
    assert pass_time(1.0) > 5


class SleepyClock(FakeClock):
    """Passes 0.25 s before its second reading: the first after the sleep of a round."""

    readings: float = math.inf

    def monotonic_s(self) -> float:
        self.readings -= 1
        if self.readings == 0:
            self.advance(0.25)
        return super().monotonic_s()


@pytest.mark.parametrize(("delay_s", "late_s"), [(0.05, 0.2), (0.5, 0.0), (0.0, 0.0)])
def test_it_knows_how_late_it_wakes(delay_s: float, late_s: float) -> None:
    """Only a timer that became due while it slept says so: another one may have waited for the calls of a round."""
    clock = SleepyClock()
    reactor, found = Reactor(clock), list[float]()
    reactor.after(delay_s, lambda: None)
    reactor.at_round_end(lambda: found.append(reactor.late_s))
    clock.readings = 2
    reactor.run_once(0.0)
    assert found == [pytest.approx(late_s)]


def test_a_timer_may_set_another(fake_clock: FakeClock) -> None:
    """A retry sets its next timer in its own call."""
    reactor, fired = Reactor(fake_clock), list[int]()

    def again() -> None:
        fired.append(len(fired))
        if len(fired) < 3:
            reactor.after(1.0, again)

    reactor.after(1.0, again)
    for _ in range(4):
        fake_clock.advance(1.0)
        reactor.run_once(0.0)
    assert fired == [0, 1, 2]


def test_stop_from_another_thread_ends_a_wait() -> None:
    """A stop must not wait for the next timer. A stop before the start counts, too."""
    reactor = Reactor()
    started = threading.Event()
    reactor.after(0.0, started.set)
    thread = threading.Thread(target=reactor.run)
    thread.start()
    assert started.wait(10)
    reactor.stop()
    thread.join(10)
    assert not thread.is_alive()
    reactor.run()


def test_the_end_of_a_round_comes_after_its_calls() -> None:
    """The data of a round is sent once, whatever the number of readable sources."""
    reactor, calls, wakeups = Reactor(), list[str](), (Wakeup(), Wakeup())

    def read(wakeup: Wakeup) -> None:
        wakeup.drain()
        calls.append("read")

    for wakeup in wakeups:
        reactor.on_readable(wakeup.fd, lambda wakeup=wakeup: read(wakeup))  # type: ignore[misc]  # mypy: lambda defaults
        wakeup.asleep = True
        wakeup.wake()
    reactor.at_round_end(lambda: calls.append("end"))
    reactor.run_once(5.0)
    assert calls == ["read", "read", "end"]
    reactor.forget(wakeups[0].fd)
    wakeups[0].asleep = True
    wakeups[0].wake()
    reactor.run_once(0.0)
    assert calls == ["read", "read", "end", "end"]
    for wakeup in wakeups:
        wakeup.close()


def test_a_wakeup_writes_only_for_a_sleeper() -> None:
    """While the thread is awake, a wake-up needs no system call."""
    wakeup = Wakeup()
    wakeup.wake()
    with pytest.raises(BlockingIOError):
        os.eventfd_read(wakeup.fd)
    wakeup.asleep = True
    wakeup.wake()
    wakeup.wake()
    assert os.eventfd_read(wakeup.fd) == 1
    wakeup.drain()
    wakeup.close()


def test_both_ends_of_a_session_notice_its_end(tmp_path: Path, sockets: SocketContext) -> None:
    """No message is needed, so an instance notices that its stream manager was killed."""
    endpoint = f"ipc://{tmp_path}/s"
    reactor, gone = Reactor(), list[str]()
    bound = sockets.channel_bound(endpoint)
    received: list[bytes | None] = []
    reactor.on_readable(bound, lambda: received.append(bound.receive()))
    reactor.on_disconnect(bound, lambda: gone.append("peer"))
    peer = sockets.channel_to(endpoint)
    peer.send(b"hello")
    while not received:
        reactor.run_once(5.0)
    assert not gone
    peer.close()
    while not gone:
        reactor.run_once(5.0)
    reactor.forget(bound)
    bound.close()
    bound.close()


def test_a_source_may_be_removed_and_closed_in_its_own_call(tmp_path: Path, sockets: SocketContext) -> None:
    """A session that breaks the protocol is closed by the call that reads it."""
    endpoint = f"ipc://{tmp_path}/s"
    reactor = Reactor()
    bound, peer = sockets.channel_bound(endpoint), sockets.channel_to(endpoint)
    calls: list[int] = []

    def close() -> None:
        calls.append(1)
        reactor.forget(bound)
        bound.close()

    reactor.on_readable(bound, close)
    reactor.on_disconnect(bound, close)
    peer.send(b"a")
    while not calls:
        reactor.run_once(5.0)
    reactor.run_once(0.0)
    assert calls == [1]
