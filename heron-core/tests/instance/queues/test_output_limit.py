"""`topology.component.output.bps`: the pace is exact for all frame sizes, and pauses save up only a short burst."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heron.instance.queues.flow_limits import OutputLimit


@dataclass
class HeldClock:
    """A clock that the test moves."""

    now_s: float = 100.0

    def __call__(self) -> float:
        return self.now_s


def send(limit: OutputLimit, clock: HeldClock, size_bytes: int) -> float:
    """Sends a frame as the gateway does; returns how long it had to wait."""
    start_s = clock.now_s
    while not limit.allows():
        wait_s = limit.wait_s()
        assert wait_s is not None
        clock.now_s += wait_s
    assert limit.wait_s() is None
    limit.spend(size_bytes)
    return clock.now_s - start_s


@given(st.floats(1.0, 1e9), st.lists(st.integers(1, 10**7), min_size=1, max_size=50))
def test_frames_without_a_pause_leave_at_the_pace(bytes_per_s: float, sizes: list[int]) -> None:
    """Each frame waits until the earlier frames are paid for, and at most 1 ms longer."""
    clock = HeldClock()
    limit = OutputLimit(bytes_per_s, clock)
    assert send(limit, clock, sizes[0]) == 0
    for size, before in zip(sizes[1:], itertools.accumulate(sizes), strict=False):
        send(limit, clock, size)
        due_s = before / bytes_per_s
        late_s = clock.now_s - 100.0 - due_s
        assert -1e-6 * due_s - 1e-6 <= late_s <= 0.001 + 1e-6 * due_s + 1e-6


@given(
    st.floats(10.0, 1e6),
    st.lists(st.tuples(st.integers(1, 10**6), st.floats(0, 100)), max_size=50),
)
def test_a_burst_is_limited_in_any_interval(bytes_per_s: float, frames: list[tuple[int, float]]) -> None:
    """In any interval, at most the pace, 1.5 s worth of bytes and one frame leave."""
    clock = HeldClock()
    limit = OutputLimit(bytes_per_s, clock)
    sent: list[tuple[float, int]] = []
    for size, pause_s in frames:
        clock.now_s += pause_s
        send(limit, clock, size)
        sent.append((clock.now_s, size))
    for first in range(len(sent)):
        total = 0
        for at_s, size in sent[first:]:
            allowed = bytes_per_s * (at_s - sent[first][0] + 1.5)
            assert total <= allowed * (1 + 1e-6) + 1  # later frames wait for the last one
            total += size


def test_the_delay_of_data_is_counted_while_it_lasts() -> None:
    """It lasts from the first refusal to the next frame; time without data does not count."""
    clock = HeldClock()
    limit = OutputLimit(100.0, clock)
    send(limit, clock, 300)
    clock.now_s += 1.0
    assert limit.delayed_s() == 0.0
    assert not limit.allows()
    clock.now_s += 0.5
    assert limit.delayed_s() == pytest.approx(0.5)
    assert not limit.allows()
    clock.now_s += 1.5
    assert limit.allows()
    assert limit.delayed_s() == pytest.approx(2.0)
    clock.now_s += 10.0
    assert limit.delayed_s() == pytest.approx(2.0)


def test_a_new_pace_applies_from_now_on() -> None:
    """A new plan may divide the limit among more tasks."""
    clock = HeldClock()
    limit = OutputLimit(1000.0, clock)
    send(limit, clock, 1000)
    limit.set_pace(100.0)
    assert send(limit, clock, 10) == pytest.approx(10.0, abs=0.002)


def test_a_limit_that_is_lifted_delays_nothing_until_it_is_set_again() -> None:
    """A new plan may switch the limit off while data waits, and a later one may switch it on."""
    clock = HeldClock()
    limit = OutputLimit(100.0, clock)
    limit.spend(1_000_000)
    assert not limit.allows()
    limit.lift()
    assert send(limit, clock, 10**9) <= 0.002
    assert send(limit, clock, 10**9) <= 0.002
    limit.set_pace(100.0)
    send(limit, clock, 200)
    assert send(limit, clock, 10) == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize(("bytes_per_s", "batch_bytes"), [(1.0, 1024), (100_000.0, 10_000), (10.0**9, 10**8)])
def test_batches_are_a_tenth_of_a_second_of_output(bytes_per_s: float, batch_bytes: int) -> None:
    """Otherwise minutes of silence would follow a batch of 512 KiB."""
    assert OutputLimit(bytes_per_s).batch_bytes == batch_bytes


def test_time_without_credit_is_no_delay_by_the_limit() -> None:
    """The causes have separate metrics: data that waits for a slow consumer is under back pressure."""
    clock = HeldClock()
    limit = OutputLimit(100.0, clock)
    limit.spend(200)
    assert not limit.allows()
    clock.now_s += 1.0
    limit.idle()
    clock.now_s += 60.0
    assert limit.delayed_s() == 1.0
    assert limit.wait_s() is None
