import pytest

from heron.instance.pacing import FlushPacer, Linger, RootQuota, SourceBacklog
from heron_testing.fake_clock import FakeClock


def backlogged(most_s: float = 0.05) -> Linger:
    """Of a task whose input was last empty at 100 s."""
    linger = Linger(0.01)
    linger.grow_to(most_s)
    linger.ran_dry(100.0)
    return linger


def test_the_linger_grows_with_the_backlog_up_to_its_most() -> None:
    """A tuple that has waited for 0.1 s loses little if it waits for others for a quarter of that."""
    found = [backlogged().at(100.0 + age_s) for age_s in (0.0, 0.04, 0.1, 0.2, 10.0)]
    assert found == pytest.approx([0.01, 0.01, 0.025, 0.05, 0.05])


def test_an_input_that_runs_empty_ends_the_longer_linger() -> None:
    linger = backlogged()
    linger.ran_dry(110.0)
    assert linger.at(110.0) == 0.01


def test_without_a_backlog_to_measure_the_usual_linger_holds() -> None:
    """A spout has no input; a bolt has just started; the setting is longer than what the linger may grow to."""
    fresh = Linger(0.01)
    fresh.ran_dry(0.0)
    assert fresh.at(1000.0) == 0.01
    started = Linger(0.01)
    started.grow_to(0.05)
    assert started.at(1000.0) == 0.01
    long = Linger(0.2)
    long.grow_to(0.05)
    long.ran_dry(0.0)
    assert long.at(1000.0) == 0.2


def test_a_flush_is_due_when_the_linger_of_its_time_is_over() -> None:
    pacer = FlushPacer(backlogged())
    pacer.flushed(100.02)
    assert pacer.linger_is_over(100.032)
    pacer.flushed(101.0)
    assert not pacer.linger_is_over(101.04)
    assert pacer.linger_is_over(101.06)


class Thread:
    """What the system tells of a spout's thread: the time, and how long it had something to emit."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.awake_s: float | None = 7.0
        self.linger = Linger(0.01)
        self.linger.grow_to(0.05)
        self.source = SourceBacklog(self.linger)
        self.look()

    def run(self, seconds: float, slept_s: float = 0.0) -> None:
        """Time passes; the thread has slept for a part of it."""
        self.now_s += seconds
        if self.awake_s is not None:
            self.awake_s += seconds - slept_s
        self.look()

    def look(self) -> None:
        self.source.look_if_due(self.now_s, lambda: self.awake_s)

    def lingers(self) -> float:
        return self.linger.at(self.now_s)


def test_a_spout_that_always_has_something_to_emit_lingers_longer() -> None:
    """Its tuples had to wait in the source anyway, since the source was last known to be empty."""
    thread = Thread()
    found = []
    for _ in range(4):
        found.append(thread.lingers())
        thread.run(0.125, slept_s=0.01)
    assert found == pytest.approx([0.01, 0.03125, 0.05, 0.05])


def test_a_spout_that_waits_for_its_source_keeps_the_usual_linger() -> None:
    """Its call may block in the source, which looks like a long call."""
    thread = Thread()
    for _ in range(20):
        thread.run(0.125, slept_s=0.02)
        assert thread.lingers() == 0.01


def test_a_call_that_emits_nothing_ends_the_longer_linger_at_once() -> None:
    thread = Thread()
    for _ in range(5):
        thread.run(0.125)
    assert thread.lingers() == 0.05
    thread.source.ran_dry(thread.now_s)
    assert thread.lingers() == 0.01
    thread.run(0.125)
    assert thread.lingers() == pytest.approx(0.03125)


def test_a_source_that_begins_to_wait_ends_the_longer_linger_with_the_next_look() -> None:
    thread = Thread()
    for _ in range(5):
        thread.run(0.125)
    thread.run(0.125, slept_s=0.05)
    assert thread.lingers() == 0.01
    thread.run(0.125)
    assert thread.lingers() == pytest.approx(0.03125)


def test_where_the_system_does_not_tell_the_usual_linger_holds() -> None:
    thread = Thread()
    thread.awake_s = None
    for _ in range(20):
        thread.run(0.1)
    assert thread.lingers() == 0.01


def test_the_system_is_asked_ten_times_a_second() -> None:
    """Asking costs a read of a file."""
    asked = 0

    def awake_s() -> float:
        nonlocal asked
        asked += 1
        return 0.0

    source = SourceBacklog(Linger(0.01))
    for step in range(1001):
        source.look_if_due(100.0 + step * 0.001, awake_s)
    assert 10 <= asked <= 11


def test_a_spout_at_its_limit_waits_for_the_rows_of_a_full_flush_within_the_linger() -> None:
    """Otherwise it would send a batch for each few acks, and with many destinations a few rows to each."""
    clock = FakeClock()
    quota = RootQuota(60_000, Linger(0.01), clock.monotonic_s)
    assert [quota.must_wait(free, lambda: 2500) for free in (0, 2499, 2500, 60_000)] == [True, True, False, False]
    assert quota.must_wait(14_999, lambda: 20_000), "a quarter of the limit is enough"
    assert not quota.must_wait(15_000, lambda: 20_000)
    assert quota.must_wait(100, lambda: 20_000)
    clock.advance(0.011)
    assert not quota.must_wait(100, lambda: 20_000), "the linger is over"
    assert quota.must_wait(100, lambda: 20_000), "the next one begins"
