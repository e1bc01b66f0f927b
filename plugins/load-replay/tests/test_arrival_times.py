"""When the tuples of a replay are due, and in which buckets their latencies are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heron.errors import UsageError
from heron_load_replay.arrival_times import ArrivalTimes, parse_speed, task_partitions
from heron_load_replay.latency_histogram import LatencyHistogram
from heron_load_replay.replay_order import ReplayOrder

SPEEDS = st.floats(min_value=0.01, max_value=100.0)


@given(st.lists(st.integers(0, 10**9), min_size=1), SPEEDS)
def test_a_speed_scales_the_times_of_the_file(times_us: list[int], speed: float) -> None:
    """Twice as fast, a tuple is due after half of the time, and the order stays."""
    arrivals = ArrivalTimes(speed=speed)
    due = [arrivals.due_s(number, each) for number, each in enumerate(sorted(times_us))]
    assert due == sorted(due)
    assert due[-1] == pytest.approx(max(times_us) / 1e6 / speed)


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=8), st.floats(1.0, 1e6), st.integers(1, 4))
def test_tasks_share_a_rate_by_their_tuples(partitions: list[int], rate: float, parallelism: int) -> None:
    """So all of them end together, and the rate is that of the spout."""
    order = ReplayOrder("", "", tuple(partitions), 0.0, rate, 1.0)
    owned = [task_partitions(len(partitions), index, parallelism) for index in range(parallelism)]
    assert sorted(each for own in owned for each in own) == list(range(len(partitions)))
    rates = [order.arrivals(own).rate for own in owned]
    assert sum(rates) == pytest.approx(rate if sum(partitions) else 0.0)
    for own, each in zip(owned, rates, strict=True):
        number = sum(partitions[place] for place in own)
        if number:
            assert ArrivalTimes(0.0, each).due_s(number, 0) == pytest.approx(sum(partitions) / rate)


def test_a_closed_system_has_no_times() -> None:
    """A tuple is due when there is room for it."""
    assert ArrivalTimes(speed=0.0).is_closed
    assert not ArrivalTimes(speed=0.0, rate=1.0).is_closed


@pytest.mark.parametrize(("text", "speed"), [("2x", 2.0), ("0.5x", 0.5), ("3", 3.0)])
def test_a_speed_is_a_factor(text: str, speed: float) -> None:
    """With or without its sign."""
    assert parse_speed(text) == speed


@pytest.mark.parametrize("text", ["0x", "-1x", "fast", "", "1e3x", "nan"])
def test_another_speed_is_refused(text: str) -> None:
    """A replay at speed 0 would never end."""
    with pytest.raises(UsageError, match="is no factor above 0"):
        parse_speed(text)


@given(st.lists(st.integers(0, 10**10), min_size=1, max_size=200), st.floats(0.1, 100.0))
def test_a_percentile_is_within_a_hundredth(times_us: list[int], percent: float) -> None:
    """It never says that a time was shorter than it was."""
    histogram = LatencyHistogram()
    for each in times_us:
        histogram.add((each + 0.5) / 1e6)
    exact = sorted(times_us)[max(0, -(-len(times_us) * percent // 100).__int__() - 1)]
    found = histogram.percentile_s(percent)
    assert found is not None
    assert exact <= round(found * 1e6) <= exact * 1.01 + 1


@given(st.lists(st.floats(0.0, 1e4)), st.lists(st.floats(0.0, 1e4)))
def test_histograms_of_tasks_add_up(one: list[float], other: list[float]) -> None:
    """The result of a replay is that of all its tasks."""
    parts, whole = (LatencyHistogram(), LatencyHistogram()), LatencyHistogram()
    for part, times in zip(parts, (one, other), strict=True):
        for each in times:
            part.add(each)
            whole.add(each)
    parts[0].merge(parts[1])
    assert (parts[0].buckets, parts[0].most_us, parts[0].count) == (whole.buckets, whole.most_us, len(one + other))
    assert LatencyHistogram().percentile_s(99) is None
